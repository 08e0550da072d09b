# One theta would leave out what xPos does to lengths: the title says so, and asked for alone it is refused.
posenc plot decay xpos --length 20 | head -5
posenc plot decay xpos --length 20 --theta one
