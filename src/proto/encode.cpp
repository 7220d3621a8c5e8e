#include "base/escape.h"
#include "base/text.h"
#include "proto/codec.h"
#include "proto/fields.h"
#include "proto/json_writer.h"
#include "proto/text_forms.h"
#include "proto/words.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace gpurota::proto {
namespace {

// Ordered: fields keep the order of the interface, which is the order for people.
using OrderedJson = nlohmann::ordered_json;

enum class Nulls { kShown, kLeftOut };

std::string dump(const OrderedJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

struct Encoder {
  Nulls nulls;

  OrderedJson value(bool flag) const { return flag; }
  template <std::integral T>
  OrderedJson value(T number) const {
    if (std::cmp_greater(number, INT64_MAX)) return INT64_MAX;
    return number;
  }
  OrderedJson value(const std::string& text) const { return text; }
  OrderedJson value(Bytes amount) const {
    return static_cast<std::int64_t>(amount.count() > INT64_MAX ? INT64_MAX : amount.count());
  }
  OrderedJson value(LeaseId id) const { return to_string(id); }
  OrderedJson value(RequestId id) const { return to_string(id); }
  OrderedJson value(const GpuUuid& uuid) const { return uuid.value; }
  OrderedJson value(WallTime time) const { return format_time(time); }
  template <class Enum>
  requires std::is_enum_v<Enum> OrderedJson value(Enum word)
  const { return word_of(word); }
  OrderedJson value(const SizeSpec& size) const {
    if (size.percent > 0) return OrderedJson{{"percent", size.percent}};
    return OrderedJson{{"bytes", value(size.bytes)}};
  }
  template <class T>
  OrderedJson value(const std::vector<T>& items) const {
    OrderedJson array = OrderedJson::array();
    for (const T& item : items) array.push_back(value(item));
    return array;
  }
  template <class T>
  requires std::is_class_v<T> OrderedJson value(const T& object)
  const {
    OrderedJson out = OrderedJson::object();
    visit(Fields{*this, out}, object);
    return out;
  }

  struct Fields {
    const Encoder& encoder;
    OrderedJson& out;
    template <class T>
    void operator()(const char* name, const T& field) {
      out[name] = encoder.value(field);
    }
    template <class T>
    void operator()(const char* name, const std::optional<T>& field) {
      if (field) {
        out[name] = encoder.value(*field);
      } else if (encoder.nulls == Nulls::kShown) {
        out[name] = nullptr;
      }
    }
  };
};

// Cuts between code points, never inside one.
std::string shortened(const std::string& text, std::size_t max) {
  if (text.size() <= max) return text;
  std::size_t cut = max;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return text.substr(0, cut) + "…";
}

}  // namespace

template <class Method>
std::string reply_json(const typename Method::Reply& reply, bool continues) {
  JsonWriter writer;
  writer.raw("{\"parameters\":");
  writer.value(reply);
  writer.raw(continues ? ",\"continues\":true}" : "}");
  return writer.take();
}

template <class Item>
std::string item_json(const Item& item) {
  JsonWriter writer;
  writer.value(item);
  return writer.take();
}

std::string with_items(std::string text, std::string_view list, std::string_view items) {
  std::string empty = "\"";
  empty.append(list).append("\":[]");
  const std::size_t at = text.find(empty);
  if (at != text.npos) text.insert(at + empty.size() - 1, items);
  return text;
}

template <class Method>
std::string document_json(const typename Method::Reply& reply) {
  return escape_hidden(dump(Encoder{Nulls::kShown}.value(reply), 2) + "\n", Escapes::kJson);
}

template <class Method>
std::string call_json(const Method& params, bool more, std::string_view session) {
  OrderedJson message = OrderedJson::object();
  message["method"] = Method::kMethod;
  message["parameters"] = Encoder{Nulls::kLeftOut}.value(params);
  if (more) message["more"] = true;
  if (!session.empty()) message["session"] = session;
  return dump(message);
}

std::string error_json(const WireError& error) {
  OrderedJson parameters = OrderedJson::object();
  if (error.name == kInvalidParameter) {
    parameters["parameter"] = error.subject;
  } else if (error.name == kInterfaceNotFound) {
    parameters["interface"] = error.subject;
  } else if (error.name == kMethodNotFound || error.name == kMethodNotImplemented) {
    parameters["method"] = error.subject;
  } else {
    parameters["message"] = error.message;
  }
  if (error.name == kNoGpu) {
    parameters["free"] = error.free;
    parameters["total"] = error.total;
    if (error.wait_reason) {
      parameters["wait_reason"] = Encoder{Nulls::kShown}.value(*error.wait_reason);
    }
  }
  OrderedJson message = OrderedJson::object();
  message["error"] = error.name;
  message["parameters"] = std::move(parameters);
  return dump(message);
}

std::string event_json(const Event& event) {
  JsonWriter writer;
  writer.value(event);
  return escape_hidden(writer.take() + "\n", Escapes::kJson);
}

std::string notice_json(const Notice& notice) {
  JsonWriter writer;
  writer.value(notice);
  return escape_hidden(writer.take() + "\n", Escapes::kJson);
}

std::string_view error_word(std::string_view message) {
  constexpr std::string_view kBegin = R"({"error":")";
  if (!message.starts_with(kBegin)) return {};
  message.remove_prefix(kBegin.size());
  message = message.substr(0, message.find('"'));
  return message.substr(message.rfind('.') + 1);
}

std::vector<std::string> sendable_command(const std::vector<std::string>& argv) {
  // A byte takes up to six in JSON (an escape), and U+FFFD takes three. So the call stays far below
  // kMaxCallBytes only if each argument is bounded, too.
  constexpr std::size_t kMaxArgument = 512;
  std::vector<std::string> out;
  std::size_t bytes = 0;
  for (const std::string& argument : argv) {
    const std::string text = valid_utf8(shortened(argument, kMaxArgument));
    bytes += text.size() + 1;
    if (out.size() + 1 >= kMaxCommandItems || bytes + 8 > kMaxCommandBytes) {
      out.emplace_back("…");
      break;
    }
    out.push_back(text);
  }
  return out;
}

#define GPUROTA_INSTANTIATE(M)                                        \
  template std::string reply_json<M>(const typename M::Reply&, bool); \
  template std::string document_json<M>(const typename M::Reply&);    \
  template std::string call_json<M>(const M&, bool, std::string_view);
GPUROTA_FOR_EACH_METHOD(GPUROTA_INSTANTIATE)
template std::string item_json<Event>(const Event&);
template std::string item_json<GpuPoint>(const GpuPoint&);
template std::string item_json<LeasePoint>(const LeasePoint&);
template std::string item_json<GpuHistory>(const GpuHistory&);
template std::string item_json<LeaseHistory>(const LeaseHistory&);

}  // namespace gpurota::proto
