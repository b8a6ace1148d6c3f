WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT hex(i), 'it''s', x'00ff', printf('%.3f', i) FROM c
