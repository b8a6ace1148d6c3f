SELECT job, count(*) AS n, max(loss) FROM steps GROUP BY job ORDER BY n LIMIT 3
