posenc --verison
