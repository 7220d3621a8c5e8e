#include "store/columns.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace gpurota::store {

namespace {

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

std::string join_gpus(const std::vector<GpuUuid>& gpus) {
  std::string text;
  for (const GpuUuid& gpu : gpus) text += (text.empty() ? "" : ",") + gpu.value;
  return text;
}

std::vector<GpuUuid> split_gpus(const std::string& text) {
  std::vector<GpuUuid> gpus;
  for (std::string& gpu : split(text, ',')) gpus.push_back(GpuUuid{std::move(gpu)});
  return gpus;
}

std::string join_containers(const std::vector<ports::StoredContainer>& containers) {
  std::string text;
  for (const auto& [uid, group] : containers) text += std::to_string(uid) + " " + group + "\n";
  return text;
}

std::vector<ports::StoredContainer> split_containers(const std::string& text) {
  std::vector<ports::StoredContainer> containers;
  for (const std::string& line : split(text, '\n')) {
    ports::StoredContainer one;
    const char* const end = line.data() + line.size();
    const auto [at, error] = std::from_chars(line.data(), end, one.uid);
    if (error != std::errc() || at == end || *at != ' ') continue;
    one.group.assign(at + 1, end);
    containers.push_back(std::move(one));
  }
  return containers;
}

std::string join_processes(const std::vector<ports::ProcessId>& processes) {
  std::string text;
  for (const ports::ProcessId& each : processes) {
    text += std::to_string(each.pid) + " " + std::to_string(each.start_ticks) + "\n";
  }
  return text;
}

std::vector<ports::ProcessId> split_processes(const std::string& text) {
  std::vector<ports::ProcessId> processes;
  for (const std::string& line : split(text, '\n')) {
    ports::ProcessId one;
    const char* const end = line.data() + line.size();
    const auto [at, error] = std::from_chars(line.data(), end, one.pid);
    if (error != std::errc() || at == end || *at != ' ') continue;
    if (std::from_chars(at + 1, end, one.start_ticks).ec != std::errc()) continue;
    processes.push_back(one);
  }
  return processes;
}

std::string join_pids(const std::vector<pid_t>& pids) {
  std::string text;
  for (const pid_t pid : pids) text += (text.empty() ? "" : ",") + std::to_string(pid);
  return text;
}

std::vector<pid_t> split_pids(const std::string& text) {
  std::vector<pid_t> pids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, error] = std::from_chars(at, end, pid);
    if (error != std::errc()) break;
    pids.push_back(pid);
    at = next + 1;
  }
  return pids;
}

}  // namespace gpurota::store
