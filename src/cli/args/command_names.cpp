#include "cli/args/command_names.h"

#include "base/nearest.h"
#include "cli/args/command_table.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace gpurota::cli {
namespace {

std::string lower(std::string_view word) {
  std::string low(word);
  for (char& c : low) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return low;
}

using Pair = std::pair<std::string_view, std::string_view>;
using Names = std::vector<std::string_view>;

// Names of commands in GPUMan, GPU Slice, canhazgpu, nvshare, Slurm and others, each with ours. A
// name may be listed twice.
constexpr auto kElsewhere = std::to_array<Pair>({{"proclist", "ps"},
                                                 {"nvitop", "top"},
                                                 {"nvtop", "top"},
                                                 {"htop", "top"},
                                                 {"list", "status"},
                                                 {"show", "status"},
                                                 {"info", "status"},
                                                 {"nvidia-smi", "status"},
                                                 {"sinfo", "status"},
                                                 {"squeue", "queue"},
                                                 {"allocate", "reserve"},
                                                 {"salloc", "reserve"},
                                                 {"book", "reserve"},
                                                 {"lock", "reserve"},
                                                 {"unlock", "release"},
                                                 {"kill", "release"},
                                                 {"kill", "cancel"},
                                                 {"end", "release"},
                                                 {"end", "cancel"},
                                                 {"scancel", "cancel"},
                                                 {"scancel", "release"},
                                                 {"delete", "release"},
                                                 {"delete", "job remove"},
                                                 {"extend", "update LEASE --for TIME"},
                                                 {"renew", "update LEASE --for TIME"},
                                                 {"prolong", "update LEASE --for TIME"},
                                                 {"scontrol", "update"},
                                                 {"scontrol", "explain"},
                                                 {"exec", "run"},
                                                 {"srun", "run"},
                                                 {"run-existing", "run --lease"},
                                                 {"sbatch", "job add"},
                                                 {"submit", "job add"},
                                                 {"add", "job add"},
                                                 {"start", "job start"},
                                                 {"stop", "release"},
                                                 {"stop", "job stop"},
                                                 {"restart", "job restart"},
                                                 {"remove", "job remove"},
                                                 {"logs", "job logs"},
                                                 {"log", "events"},
                                                 {"log", "job logs"},
                                                 {"sacct", "report"},
                                                 {"sreport", "report"},
                                                 {"usage", "report"},
                                                 {"pause", "filler pause"},
                                                 {"resume", "filler resume"},
                                                 {"check", "doctor"},
                                                 {"admin", "doctor"}});
constexpr auto kActionsElsewhere = std::to_array<Pair>(
    {{"ls", "list"},        {"ps", "list"},       {"status", "list"},  {"status", "show"},
     {"info", "show"},      {"create", "add"},    {"new", "add"},      {"submit", "add"},
     {"run", "add"},        {"run", "start"},     {"start", "resume"}, {"stop", "pause"},
     {"pause", "stop"},     {"resume", "start"},  {"kill", "stop"},    {"kill", "pause"},
     {"cancel", "stop"},    {"end", "stop"},      {"rm", "remove"},    {"delete", "remove"},
     {"edit", "update"},    {"change", "update"}, {"set", "update"},   {"tail", "logs"},
     {"output", "logs"},    {"import", "apply"},  {"dump", "export"},  {"test", "check"},
     {"validate", "check"}, {"verify", "check"},  {"get", "show"},     {"cat", "show"}});
constexpr auto kOptionsElsewhere = std::to_array<Pair>({{"--duration", "--for"},
                                                        {"--ttl", "--for"},
                                                        {"--time", "--for"},
                                                        {"--time", "--timeout"},
                                                        {"--timeout", "--for"},
                                                        {"--for", "--timeout"},
                                                        {"-t", "--for"},
                                                        {"-d", "--days"},
                                                        {"-d", "--timeout"},
                                                        {"--user", "--as"},
                                                        {"-u", "--user"},
                                                        {"--mine", "--me"},
                                                        {"--tag", "--note"},
                                                        {"--comment", "--note"},
                                                        {"--job-name", "--note"},
                                                        {"-J", "--note"},
                                                        {"-G", "--gpu-ids"},
                                                        {"--ids", "--gpu-ids"},
                                                        {"--device", "--gpu-ids"},
                                                        {"--devices", "--gpu-ids"},
                                                        {"--gres", "--gpus"},
                                                        {"--limit", "--memory"},
                                                        {"--vram", "--memory"},
                                                        {"--tail", "--lines"},
                                                        {"--last", "--lines"},
                                                        {"-f", "--force"},
                                                        {"-s", "--short"},
                                                        {"-w", "--watch"},
                                                        {"--set-tq", "--quantum"},
                                                        {"-T", "--quantum"},
                                                        {"--anti-thrash", "--turns"},
                                                        {"-S", "--turns"}});

template <class Pairs>
Names find_in(const Pairs& pairs, std::string_view word) {
  Names found;
  for (const Pair& pair : pairs) {
    if (pair.first == word) found.push_back(pair.second);
  }
  return found;
}

bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Our commands for `word`, a command of other tools; only commands in `names`.
template <class Pairs>
Names known_elsewhere(const Pairs& pairs, std::string_view word, const Names& names) {
  Names found = find_in(pairs, word);
  std::erase_if(found, [&names](std::string_view name) { return !is_one_of(names, name); });
  return found;
}

// The only one of `names` that `word` resembles; empty: none, or several.
std::string_view nearest_word(std::string_view word, const Names& names) {
  constexpr std::size_t kLongest = 16;
  if (word.size() < 2 || word.size() > kLongest) return {};
  const std::string low = lower(word);
  if (const Names found = nearest_names(low, names); found.size() == 1) return found.front();
  const Names begun = begun_names(low, names);
  return begun.size() == 1 ? begun.front() : std::string_view();
}

}  // namespace

std::vector<std::string_view> meant_actions(std::string_view word,
                                            const std::vector<std::string_view>& actions) {
  Names known = known_elsewhere(kActionsElsewhere, word, actions);
  if (!known.empty()) return known;
  const std::string_view near = nearest_word(word, actions);
  return near.empty() ? Names() : Names{near};
}

std::vector<std::string_view> meant_options(std::string_view option,
                                            const std::vector<std::string_view>& names) {
  Names known = known_elsewhere(kOptionsElsewhere, option, names);
  return known.empty() ? meant_names(option, names) : known;
}

bool is_command(std::string_view name) {
  return name.find(' ') == std::string_view::npos && find_command(name) != nullptr;
}

MeantCommands meant_commands(std::string_view word) {
  // The name of another tool's command is not a typing error, so nothing is corrected.
  if (Names elsewhere = find_in(kElsewhere, word); !elsewhere.empty()) return {elsewhere, false};
  Names names;
  for (const CommandRow& command : all_commands()) {
    if (command.name.find(' ') == std::string_view::npos) names.push_back(command.name);
  }
  const std::string_view near = nearest_word(word, names);
  return near.empty() ? MeantCommands() : MeantCommands{{near}, true};
}

}  // namespace gpurota::cli
