// The data of `gpurota top`: the daemon's last answers, and the samples since the start of `gpurota
// top`. Pure.
#pragma once

#include "proto/methods.h"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::cli::topview {

// The answers of one moment. Those that an older daemon does not give are empty.
struct Answers {
  WallTime when;
  proto::Status::Reply status;
  proto::ListTurns::Reply turns;
  proto::ListRequests::Reply queue;
  proto::ListProcesses::Reply processes;
  proto::ListFillers::Reply fillers;
  proto::ListJobs::Reply jobs;
};

// Percentages, oldest first; below zero: not known.
struct History {
  std::vector<int> load;
  std::vector<int> memory;
};

class Model {
 public:
  // The most samples that are kept, one per second.
  static constexpr std::size_t kMostSamples = 600;

  void take(Answers answers);
  // Call when the daemon does not answer: its last answers stay.
  void lose(std::string why) { trouble_ = std::move(why); }

  // Whether the daemon has ever answered.
  bool has_answers() const { return round_ > 0; }
  const Answers& answers() const { return answers_; }
  // Why the daemon does not answer; empty: it answers.
  const std::string& trouble() const { return trouble_; }

  const proto::Gpu* find_gpu(const GpuUuid& uuid) const;
  const proto::Lease* find_lease(LeaseId id) const;
  // Null: no turns are taken on the GPU.
  const proto::TurnGpu* find_turns(const GpuUuid& uuid) const;

  // The history of a GPU.
  History history(const GpuUuid& uuid) const;
  // The history of a lease on a GPU: only its memory, as a part of its limit or of the GPU.
  History history(LeaseId lease, const GpuUuid& uuid) const;

 private:
  struct Sample {
    int load;
    int memory;
  };
  // Adds a sample to those of `key`; tidy() removes a key without a sample in this round.
  void sample(const std::string& key, Sample sample);
  History history_of(const std::string& key) const;

  Answers answers_;
  std::string trouble_;
  std::uint64_t round_ = 0;
  struct Samples {
    std::uint64_t last_round = 0;
    std::deque<Sample> samples;
  };
  std::map<std::string, Samples> samples_;
};

}  // namespace gpurota::cli::topview
