SELECT s.step, d.choice, json_extract(i.evidence, '$[0]') FROM steps s LEFT JOIN decisions d ON d.job = s.job LEFT JOIN incidents i USING (job); -- end
