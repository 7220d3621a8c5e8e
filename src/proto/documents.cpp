#include "proto/documents.h"

#include "base/escape.h"

#include <nlohmann/json.hpp>

namespace gpurota::proto {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string printed(const OrderedJson& json) {
  return escape_hidden(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n",
                       Escapes::kJson);
}

}  // namespace

std::string joined_json(const std::vector<Part>& parts) {
  OrderedJson object = OrderedJson::object();
  for (const Part& part : parts) {
    OrderedJson whole = OrderedJson::parse(part.document, nullptr, false);
    if (!part.field.empty() && whole.is_object())
      whole = OrderedJson(whole[std::string(part.field)]);
    object[std::string(part.name)] = whole.is_discarded() ? OrderedJson() : std::move(whole);
  }
  return printed(object);
}

std::string listed_json(std::string_view name, const std::vector<std::string>& documents) {
  OrderedJson list = OrderedJson::array();
  for (const std::string& document : documents) {
    OrderedJson one = OrderedJson::parse(document, nullptr, false);
    list.push_back(one.is_discarded() ? OrderedJson() : std::move(one));
  }
  OrderedJson object = OrderedJson::object();
  object[std::string(name)] = std::move(list);
  return printed(object);
}

std::string text_json(std::string_view text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace gpurota::proto
