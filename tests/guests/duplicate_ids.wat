;; Three messages, two of them with one id.
(data (i32.const 4096)
  "{\"conversation\":{\"id\":\"c1\",\"locator\":\"a.json[0]\",\"messages\":["
  "{\"id\":\"m1\",\"role\":\"user\"},"
  "{\"id\":\"m2\",\"role\":\"assistant\",\"parent\":\"m1\"},"
  "{\"id\":\"m1\",\"role\":\"user\",\"parent\":\"m2\"}]}}\n\00")
(func $run (result i32)
  (drop (call $emit_json (i32.const 4096) (call $length (i32.const 4096))))
  (global.get $ok))
