// `--json` documents that combine several replies: parts of each, under names. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::proto {

struct Part {
  std::string_view name;
  std::string document;         // from document_json, or another JSON text; empty: null
  std::string_view field = {};  // this field of it; empty: all of it
};

// One object, indented, which ends with a newline. Escaped like document_json.
std::string joined_json(const std::vector<Part>& parts);

// An object whose only field is the list of these documents, in the form of joined_json.
std::string listed_json(std::string_view name, const std::vector<std::string>& documents);
// A text as a JSON string; what is not UTF-8 becomes U+FFFD.
std::string text_json(std::string_view text);

}  // namespace gpurota::proto
