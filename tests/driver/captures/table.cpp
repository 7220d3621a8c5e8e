#include "tests/driver/captures/table.h"

#include <algorithm>
#include <sstream>

namespace captures {
namespace {

using Lines = std::vector<std::string>;

// The lines of all cells that begin with `key`, each without `key`.
Lines fold(const Table& table, const Key& key) {
  if (key.size() == kKeys) {
    const auto found = table.find(key);
    return found == table.end() ? Lines{} : Lines{found->second};
  }
  const std::vector<std::string>& values = kValues[key.size() - kNamed];
  std::vector<Lines> below;
  for (const std::string& value : values) {
    Key longer = key;
    longer.push_back(value);
    below.push_back(fold(table, longer));
  }
  Lines out;
  if (std::all_of(below.begin(), below.end(),
                  [&](const Lines& each) { return each == below[0]; })) {
    for (const std::string& line : below[0]) out.push_back("any\t" + line);
    return out;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const std::string& line : below[i]) out.push_back(values[i] + "\t" + line);
  }
  return out;
}

void put(Table& table, Key key, std::size_t column, const std::string& answer) {
  for (; column < kKeys; ++column) {
    if (key[column] != "any") continue;
    for (const std::string& value : kValues[column - kNamed]) {
      key[column] = value;
      put(table, key, column + 1, answer);
    }
    return;
  }
  table[key] = answer;
}

std::string join(const Key& key) {
  std::string out;
  for (const std::string& each : key) out += (out.empty() ? "" : " | ") + each;
  return out;
}

std::string spaced(std::string answer) {
  std::replace(answer.begin(), answer.end(), '\t', ' ');
  return answer;
}

}  // namespace

const std::array<std::vector<std::string>, kKeys - kNamed> kValues = {{
    {"global", "thread-local", "relaxed"},
    {"same", "other"},
    {"global", "thread-local", "relaxed"},
    {"non-blocking", "blocking"},
}};

std::string print(const Table& table) {
  std::set<Key> heads;
  for (const auto& [key, answer] : table) heads.insert({key[0], key[1]});
  std::string out;
  for (const Key& head : heads) {
    for (const std::string& line : fold(table, head)) {
      out += head[0] + "\t" + head[1] + "\t" + line + "\n";
    }
  }
  return out;
}

Table parse(const std::string& text) {
  Table table;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    Key key;
    std::istringstream fields(line);
    std::string field;
    while (key.size() < kKeys && std::getline(fields, field, '\t')) key.push_back(field);
    if (line.empty() || line[0] == '#' || key.size() < kKeys) continue;
    std::getline(fields, field);
    put(table, key, kNamed, field);
  }
  return table;
}

std::set<std::string> parse_names(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.empty() && line[0] != '#') names.insert(line.substr(0, line.find('\t')));
  }
  return names;
}

std::vector<std::string> compare(const Table& stored, const Table& measured,
                                 const std::string& only, const std::set<std::string>& except) {
  std::set<Key> keys;
  for (const auto& [key, answer] : stored) keys.insert(key);
  for (const auto& [key, answer] : measured) keys.insert(key);
  std::set<std::string> differing;
  std::vector<std::string> out;
  for (const Key& key : keys) {
    if (key[0].rfind(only, 0) != 0) continue;
    const auto was = stored.find(key);
    const auto is = measured.find(key);
    const std::string before = was == stored.end() ? "nothing" : spaced(was->second);
    const std::string now = is == measured.end() ? "nothing" : spaced(is->second);
    if (before == now) continue;
    differing.insert(key[0]);
    if (except.count(key[0]) > 0) continue;
    out.push_back(join(key) + ": stored " + before + ", here " + now);
  }
  for (const std::string& name : except) {
    const bool is_asked = name.rfind(only, 0) == 0;
    if (is_asked && differing.count(name) == 0) out.push_back(name + ": does not differ any more");
  }
  return out;
}

}  // namespace captures
