;; Does what it should: one conversation of two messages, one skip, one warning.
(data (i32.const 4096)
  "{\"conversation\":{\"id\":\"c1\",\"locator\":\"a.json[0]\",\"title\":\"Bread\",\"messages\":["
  "{\"id\":\"m1\",\"role\":\"user\",\"created_at\":1000000},"
  "{\"id\":\"m2\",\"role\":\"assistant\",\"parent\":\"m1\"}]}}\n"
  "{\"skip\":{\"kind\":\"message\",\"locator\":\"a.json[1]\",\"reason\":\"no role\"}}\n"
  "{\"warning\":{\"locator\":\"a.json[2]\",\"message\":\"odd\"}}\n\00")
(func $run (result i32)
  (drop (call $emit_json (i32.const 4096) (call $length (i32.const 4096))))
  (global.get $ok))
