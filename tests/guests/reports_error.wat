;; Fails in order: import-error malformed (2) with a message that rings the bell, and a locator.
(data (i32.const 4096)
  "\01\00\00\00\00\00\00\00"
  "\02\00\00\00"
  "\40\10\00\00\0b\00\00\00"
  "\01\00\00\00"
  "\50\10\00\00\0a\00\00\00")
(data (i32.const 4160) "\07cut\0aoff\1b.!")
(data (i32.const 4176) "a.json@123")
(func $run (result i32) (i32.const 4096))
