;; A message that is its own parent, a circle of three, ids that are empty or too long, and a line that is no record.
(data (i32.const 4096)
  "{\"conversation\":{\"id\":\"c1\",\"locator\":\"a.json[0]\",\"messages\":["
  "{\"id\":\"self\",\"role\":\"user\",\"parent\":\"self\"},"
  "{\"id\":\"a\",\"role\":\"user\",\"parent\":\"b\"},"
  "{\"id\":\"b\",\"role\":\"user\",\"parent\":\"c\"},"
  "{\"id\":\"c\",\"role\":\"user\",\"parent\":\"a\"},"
  "{\"id\":\"\",\"role\":\"user\"}]}}\n"
  "{\"conversation\":{\"id\":\"\",\"locator\":\"a.json[1]\",\"messages\":[{\"id\":\"m\",\"role\":\"user\"}]}}\n"
  "{\"conversation\":{\"id\":\"c3\",\"locator\":\"a.json[2]\",\"messages\":[{\"id\":\"m\",\"role\":\"king\"}]}}\n"
  "{\"conversation\":{\"id\":\"c4\",\"locator\":\"a.json[3]\",\"created_at\":9223372036854775807,"
  "\"tags\":[\"ok\",\"Not ok\"],\"messages\":[]}}\n"
  "{\"evidence\":{\"id\":\"e1\",\"claim\":{\"statement\":{\"content\":\" \",\"memory_type\":\"fact\"}},"
  "\"extraction_method\":\"api_export\",\"locator\":\"a.json[4]\"}}\n"
  "{\"relation\":{\"source\":\"a\",\"target\":\"b\",\"relation_type\":\"supports\",\"confidence\":7}}\n"
  "hello\n\00")
(func $run (result i32)
  (drop (call $emit_json (i32.const 4096) (call $length (i32.const 4096))))
  (global.get $ok))
