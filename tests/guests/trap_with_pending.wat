;; Emits two conversations and crashes: the second may have been unfinished.
(data (i32.const 4096)
  "{\"conversation\":{\"id\":\"c1\",\"locator\":\"a.json[0]\",\"messages\":[]}}\n"
  "{\"conversation\":{\"id\":\"c2\",\"locator\":\"a.json[1]\",\"messages\":[]}}\n\00")
(func $run (result i32)
  (drop (call $emit_json (i32.const 4096) (call $length (i32.const 4096))))
  (unreachable))
