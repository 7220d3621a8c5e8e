#include "proto/documents.h"

#include "base/escape.h"

#include <nlohmann/json.hpp>

namespace gpurota::proto {

std::string joined_json(const std::vector<Part>& parts) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson object = OrderedJson::object();
  for (const Part& part : parts) {
    OrderedJson whole = OrderedJson::parse(part.document, nullptr, false);
    if (!part.field.empty() && whole.is_object())
      whole = OrderedJson(whole[std::string(part.field)]);
    object[std::string(part.name)] = whole.is_discarded() ? OrderedJson() : std::move(whole);
  }
  return escape_hidden(object.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n",
                       Escapes::kJson);
}

}  // namespace gpurota::proto
