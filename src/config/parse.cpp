// Applies the texts to a Config: parse() of loaded.h.
#include "base/nearest.h"
#include "config/document.h"
#include "config/loaded.h"
#include "config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace gpurota::config {
namespace {

using Kind = Value::Kind;

// Suggestions take time to find: none for a file that is clearly not a gpurota.toml.
constexpr std::size_t kMostProposals = 1000;

const Value* find(const Value& table, std::string_view key) {
  for (const Member& member : table.table) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

// Sections with tables that the site names, such as [limits.user.NAME].
constexpr std::array<std::string_view, 6> kNamed = {
    "limits.user", "limits.group", "fair_share.user", "fair_share.group", "turns.gpu", "gpu.class"};

template <class Named>
void meet(const Value& document, std::string_view section, std::string_view kind, Named& named) {
  const Value* const outer = find(document, section);
  const Value* const names = outer ? find(*outer, kind) : nullptr;
  if (!names) return;
  for (const Member& member : names->table) named[member.key];
}

// [gpu.0] and [gpu.GPU-6f1f…] are settings of one GPU. Any other name after "gpu." is a typing
// mistake, or a class.
void meet_gpus(const Value& document, GpuRules& gpus) {
  const Value* const outer = find(document, "gpu");
  if (!outer) return;
  for (const Member& member : outer->table) {
    const bool index =
        !member.key.empty() && member.key.find_first_not_of("0123456789") == std::string::npos;
    const bool uuid = member.key.starts_with("GPU-") || member.key.starts_with("MIG-");
    if (index || uuid) gpus[member.key];
  }
}

std::string leaf_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? path : path.substr(dot + 1));
}

// Applies one file on top of those before it.
class DocumentReader {
 public:
  DocumentReader(const std::string& file, const Value& document, Loaded& into)
      : file_(file), into_(into), known_(settings(document, into.config)) {
    take(document, "");
    std::stable_sort(mistakes.begin(), mistakes.end(), [](const Problem& a, const Problem& b) {
      return a.place.line < b.place.line;
    });
  }

  std::vector<Problem> mistakes;

 private:
  static Settings settings(const Value& document, Config& config) {
    meet(document, "limits", "user", config.limits.users);
    meet(document, "limits", "group", config.limits.groups);
    meet(document, "fair_share", "user", config.fair_share.users);
    meet(document, "fair_share", "group", config.fair_share.groups);
    meet(document, "turns", "gpu", config.turns.gpus);
    meet(document, "gpu", "class", config.gpu_classes);
    meet_gpus(document, config.gpus);
    return settings_of(config);
  }

  void complain(const Value& at, std::string key, std::string what) {
    mistakes.push_back({{file_, at.line}, std::move(key), std::move(what)});
  }

  bool is_section(const std::string& path) const {
    const auto inside = known_.lower_bound(path + ".");
    return (inside != known_.end() && inside->first.starts_with(path + ".")) ||
           std::any_of(kNamed.begin(), kNamed.end(), [&](std::string_view named) {
             return named == path || named.starts_with(path + ".");
           });
  }

  void take(const Value& table, const std::string& prefix) {
    for (const auto& [key, value] : table.table) {
      const std::string path = prefix + key;
      const auto setting = known_.find(path);
      if (setting != known_.end()) {
        take_setting(path, setting->second, value);
      } else if (!is_section(path)) {
        complain(value, path,
                 mistakes.size() < kMostProposals ? unknown(path, value) : no_such("setting", {}));
      } else if (value.is(Kind::kTable)) {
        into_.places[path] = {file_, value.line};
        take(value, path + ".");
      } else {
        complain(value, path, fmt::format("{} is not a section: write [{}]", quoted(value), path));
      }
    }
  }

  void take_setting(const std::string& path, const Setting& setting, const Value& value) {
    setting.take(value, [&](const Value& at, const std::string& below, std::string what) {
      complain(at, path + below, std::move(what));
    });
    into_.places[path] = {file_, value.line};
    for (std::size_t i = 0; setting.is_list && i < value.list.size(); ++i) {
      into_.places[fmt::format("{}[{}]", path, i + 1)] = {file_, value.list[i].line};
    }
  }

  // Suggests a key of this section that is spelt like it, else the same key in another section.
  std::string unknown(const std::string& path, const Value& value) const {
    const std::string leaf = leaf_of(path);
    const std::string prefix = path.substr(0, path.size() - leaf.size());
    std::set<std::string> here;
    std::vector<std::string> elsewhere;
    for (const auto& [key, setting] : known_) {
      if (key.starts_with(prefix)) {
        here.insert(key.substr(prefix.size(), key.find('.', prefix.size()) - prefix.size()));
      }
      if (leaf_of(key) == leaf) elsewhere.push_back(key);
    }
    for (const std::string_view section : kNamed) {
      if (section.starts_with(prefix)) here.emplace(section.substr(prefix.size()));
    }
    const std::string near = nearest_name(leaf, {here.begin(), here.end()});
    const std::string what = value.is(Kind::kTable) ? "section" : "setting";
    if (!near.empty()) return no_such(what, prefix + near);
    if (elsewhere.size() == 1 && elsewhere.front() == leaf) {
      return fmt::format(
          "no such setting; did you mean {}, which stands before the first [section]?", leaf);
    }
    return no_such(what, elsewhere.size() == 1 ? elsewhere.front() : std::string());
  }

  const std::string& file_;
  Loaded& into_;
  const Settings known_;
};

// Checks that concern several settings together.
std::vector<Problem> check_together(const Loaded& loaded) {
  const Config& config = loaded.config;
  const Automatic& automatic = config.automatic;
  std::vector<Problem> mistakes;
  const auto complain = [&](const std::string& key, const std::string& what) {
    mistakes.push_back({loaded.place_of(key), key, what});
  };
  if (config.unread_size_per_user < mib(1)) {
    complain("unread_size_per_user", "at least 1M, as an answer may need that");
  }
  if (automatic.enabled && automatic.memory == SizeSpec{}) {
    complain("automatic.memory",
             "it is missing: say how much of a GPU each program gets, such as memory = \"8G\"");
  }
  if (automatic.soft_limit && config.soft_limit.policy == SoftLimit::Policy::kEvict) {
    complain("automatic.soft_limit",
             "automatic leases are slices, whose memory cannot be moved out as "
             "soft_limit.policy = \"evict\" says: leave one of them out");
  }
  for (const auto& [name, rule] : config.gpu_classes) {
    if (rule == GpuClass{}) {
      complain("gpu.class." + name, "it says of no GPU: give type, min_memory, min_cc or gpus");
    }
  }
  return mistakes;
}

void keep(Loaded& loaded, const std::vector<Problem>& mistakes) {
  for (const Problem& mistake : mistakes) {
    if (loaded.mistakes.size() < kMostMistakes) {
      loaded.mistakes.push_back(mistake);
    } else {
      ++loaded.more_mistakes;
    }
  }
}

}  // namespace

Loaded parse(const std::vector<Text>& texts) {
  Loaded loaded;
  for (const Text& text : texts) {
    loaded.files.push_back(text.file);
    const auto document = parse_document(text);
    keep(loaded, document ? DocumentReader(text.file, *document, loaded).mistakes
                          : std::vector<Problem>{document.error()});
  }
  if (loaded.mistake_count() == 0) keep(loaded, check_together(loaded));
  return loaded;
}

}  // namespace gpurota::config
