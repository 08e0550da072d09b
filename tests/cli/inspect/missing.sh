posenc inspect nowhere.json
