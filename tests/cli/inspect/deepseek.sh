# MLA and yarn: what turns is the tail of a head, and the magnitude stands in the scores.
posenc inspect "$SOURCE/tests/golden/configs/deepseek_v3.json"
