;; Says that it read 2^62 of 2^63 bytes, and emits one empty conversation.
(data (i32.const 4096)
  "{\"conversation\":{\"id\":\"c1\",\"locator\":\"a.json[0]\",\"messages\":[]}}\n\00")
(func $run (result i32)
  (drop (call $progress (i64.const 0x4000000000000000) (i32.const 1) (i64.const 0x7fffffffffffffff)))
  (drop (call $emit_json (i32.const 4096) (call $length (i32.const 4096))))
  (global.get $ok))
