// Text that keeps its value in a notation that has escapes (JSON, TOML), and yet does nothing to a
// terminal that it is printed on. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace gpurota {

// The escape of a code point: "\\u202E", and of one beyond U+FFFF the two surrogates in JSON and
// "\\U000E0041" in TOML.
enum class Escapes { kJson, kToml };

// Every control character (C0 but newline and tab, DEL, C1) and every other character that
// display_text never shows (whatever reorders text, or hides) becomes its escape; each invalid byte
// becomes U+FFFD. All else stays, so a whole document may be given, as long as such characters
// stand only within its strings.
std::string escape_hidden(std::string_view document, Escapes escapes);

}  // namespace gpurota
