// The settings of [notify].
#include "base/text.h"
#include "config/setting.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::config {
namespace {

using Kind = Value::Kind;
using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kMostTimes = 8;
constexpr std::size_t kMostWords = 64;

// Nothing: the value is not a list of texts, or is too long.
std::optional<std::vector<std::string>> texts_in(const Value& value) {
  if (!value.is(Kind::kList) || value.list.size() > kMostWords) return std::nullopt;
  std::vector<std::string> texts;
  for (const Value& each : value.list) {
    if (!each.is(Kind::kText)) return std::nullopt;
    texts.push_back(each.text);
  }
  return texts;
}

// Headers and curl's configuration take the text as one line.
bool is_one_line(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// A secret is never shown, neither to people who may see the configuration nor in the log. The hash
// of a secret shows whether the secret has changed.
std::string secret_text(const std::string& secret) {
  if (secret.empty()) return "";
  return fmt::format("(secret, {:04x})", std::hash<std::string>()(secret) & 0xffff);
}

std::string take_webhook(const Value& value, std::string& into) {
  const std::string& url = value.text;
  const bool is_url = url.starts_with("https://") || url.starts_with("http://");
  if (!value.is(Kind::kText) || !is_one_line(url) || (!url.empty() && !is_url)) {
    return "it is not a URL: write one such as \"https://example.org/hook\"";
  }
  into = url;
  return {};
}

std::string take_headers(const Value& value, std::vector<std::string>& into) {
  auto headers = texts_in(value);
  const auto is_header = [](const std::string& text) {
    return is_one_line(text) && text.find(':') != text.npos;
  };
  if (!headers || !std::all_of(headers->begin(), headers->end(), is_header)) {
    return "they are not headers: write them in quotes: [\"Authorization: Bearer …\"]";
  }
  into = std::move(*headers);
  return {};
}

std::string take_events(const Value& value, std::vector<NoticeKind>& into) {
  std::vector<NoticeKind> kinds;
  std::string known;
  for (const NoticeKind kind : kNoticeKinds) {
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", to_string(kind));
  }
  const auto words = texts_in(value);
  if (!words) {
    return fmt::format("{} is not a list of events: write some of {} between brackets",
                       quoted(value), known);
  }
  for (const std::string& word : *words) {
    const auto kind = parse_notice_kind(word);
    if (!kind) {
      return fmt::format("there is no event '{}': write some of {}", display_text(word, 40), known);
    }
    if (std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) kinds.push_back(*kind);
  }
  into = std::move(kinds);
  return {};
}

std::string take_times(const Value& value, std::vector<Milliseconds>& into) {
  const std::string wanted =
      fmt::format("write at most {} times, between brackets: [\"5m\", \"1m\"]", kMostTimes);
  if (!value.is(Kind::kList) || value.list.size() > kMostTimes) {
    return fmt::format("{} is not a list of times: {}", quoted(value), wanted);
  }
  std::vector<Milliseconds> times;
  for (const Value& each : value.list) {
    std::string what;
    Milliseconds time{};
    const auto complain = [&what](const Value&, const std::string&, std::string why) {
      what = std::move(why);
    };
    duration(time, std::chrono::seconds(1)).take(each, complain);
    if (!what.empty()) return what;
    times.push_back(time);
  }
  std::sort(times.rbegin(), times.rend());
  into = std::move(times);
  return {};
}

}  // namespace

Setting program(std::vector<std::string>& into) {
  const auto take = [&into](const Value& value) -> std::string {
    auto words = texts_in(value);
    if (!words || (!words->empty() && !words->front().starts_with('/'))) {
      return fmt::format(
          "{} is not a command: write a program by its absolute path, and its "
          "arguments, each in quotes: [\"/usr/local/bin/notify-user\", \"--brief\"]",
          quoted(value));
    }
    into = std::move(*words);
    return {};
  };
  return simple(take, [&into] { return names_text(into); });
}

Setting absolute_path(std::string& into) {
  const auto take = [&into](const Value& value) -> std::string {
    if (!value.is(Kind::kText) || !value.text.starts_with('/')) {
      return fmt::format("{} is not an absolute path", quoted(value));
    }
    into = value.text;
    return {};
  };
  return simple(take, [&into] { return into; });
}

Setting mail_domain(std::string& into) {
  const auto is_plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  };
  const auto take = [&into, is_plain](const Value& value) -> std::string {
    if (!value.is(Kind::kText) || !std::all_of(value.text.begin(), value.text.end(), is_plain)) {
      return fmt::format("{} is not a domain: write one such as \"example.org\"", quoted(value));
    }
    into = value.text;
    return {};
  };
  return simple(take, [&into] { return into; });
}

Setting account(std::string& into) {
  const auto take = [&into](const Value& value) -> std::string {
    if (!value.is(Kind::kText) || value.text.empty()) {
      return fmt::format("{} is not the name of a user: write it in quotes", quoted(value));
    }
    into = value.text;
    return {};
  };
  return simple(take, [&into] { return into; });
}

Setting secret_url(std::string& into) {
  return simple([&into](const Value& value) { return take_webhook(value, into); },
                [&into] { return secret_text(into); });
}

Setting secret_headers(std::vector<std::string>& into) {
  return simple([&into](const Value& value) { return take_headers(value, into); },
                [&into] {
                  return into.empty() ? "[]"
                                      : secret_text(fmt::format("{}", fmt::join(into, "\n")));
                });
}

Setting events(std::vector<NoticeKind>& into) {
  return simple([&into](const Value& value) { return take_events(value, into); },
                [&into] {
                  std::vector<std::string> words;
                  for (const NoticeKind kind : into) words.emplace_back(to_string(kind));
                  return names_text(words);
                });
}

Setting times(std::vector<Milliseconds>& into) {
  return simple([&into](const Value& value) { return take_times(value, into); },
                [&into] {
                  std::vector<std::string> texts;
                  for (const Milliseconds time : into) texts.push_back(text_of(time));
                  return names_text(texts);
                });
}

}  // namespace gpurota::config
