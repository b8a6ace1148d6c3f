ATTACH '/dev/null' AS x; DELETE FROM steps; PRAGMA user_version = 3
