// Escapes characters that could affect a terminal, in a document whose notation has escapes (JSON,
// TOML), without changing the document's values. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace gpurota {

// The form of an escape: "\\u202E" in both; beyond U+FFFF two surrogates in JSON and "\\U000E0041"
// in TOML.
enum class Escapes { kJson, kToml };

// Replaces by its escape every control character (C0 except newline and tab, DEL, C1) and every
// other character that display_text never shows (those that reorder text, or are invisible). Each
// invalid byte becomes U+FFFD. Everything else stays, so `document` may be a whole document, as
// long as such characters occur only within its strings.
std::string escape_hidden(std::string_view document, Escapes escapes);

}  // namespace gpurota
