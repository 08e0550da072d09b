posenc verify --excutor both .
