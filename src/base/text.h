// Foreign text (notes, user names, argv, driver messages) that a person or a log will see.
//
// Such text is executed and stored byte for byte, and made harmless only where it is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota {

// One line that is safe for a terminal, a log and JSON. Invalid UTF-8, control characters (C0, C1,
// DEL, newline, tab), bidirectional overrides and other invisible format characters become U+FFFD.
// At most `max_columns` characters (code points), the last one an ellipsis if cut.
std::string display_text(std::string_view foreign, std::size_t max_columns = 200);

// Valid UTF-8: each invalid byte becomes U+FFFD, and nothing else changes. For JSON, which must be
// valid UTF-8 but may hold a newline.
std::string valid_utf8(std::string_view foreign);

// The number of terminal columns of `utf8`: wide East Asian characters count two, combining ones
// none.
std::size_t display_width(std::string_view utf8);

// A command line for a person: quotes arguments with spaces or shell characters so that it can be
// pasted into a shell, then applies display_text.
std::string display_command(const std::vector<std::string>& argv, std::size_t max_columns = 200);

}  // namespace gpurota
