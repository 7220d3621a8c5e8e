// Averages and maxima of the points of a GPU or a lease, and their text. Pure.
#pragma once

#include "proto/methods.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gpurota::cli {

// The average of the known values, each point weighted by the seconds that were sampled; and the
// maximum.
class Sum {
 public:
  void add(std::optional<std::int64_t> value, std::optional<std::int64_t> most,
           std::int64_t seconds);
  void add(std::optional<Bytes> value, std::optional<Bytes> most, std::int64_t seconds);
  bool empty() const { return weights_ <= 0; }
  double mean() const { return empty() ? 0 : total_ / weights_; }
  double most() const { return static_cast<double>(most_); }

 private:
  double total_ = 0, weights_ = 0;
  std::int64_t most_ = 0;
};

struct GpuSums {
  Sum load, memory, power, heat;
  std::string limits = "-";  // "power,temperature"
  std::string errors = "-";  // "0"; "1 Xid, 0 ECC"
};
GpuSums sums_of(const proto::GpuHistory& gpu);

struct LeaseSums {
  Sum memory, load;
  std::uint64_t evictions = 0;
  std::int64_t waited_ms = 0;
};
LeaseSums sums_of(const proto::LeaseHistory& lease);

// For a mean() or a most() of this sum; "-": nothing is known.
std::string percent_text(const Sum& sum, double value);
std::string watts_text(const Sum& sum, double milliwatts);
std::string size_text(const Sum& sum, double bytes);
// `ascii`: without the degree sign.
std::string heat_text(const Sum& sum, double celsius, bool ascii);
std::string waited_text(std::int64_t milliseconds);

// "2026-11-27 10:05:00", local.
std::string full_time(WallTime time);
// "from … to …, in steps of 10 s".
std::string span_line(const proto::History::Reply& reply);
bool has_points(const proto::History::Reply& reply);
// "nothing was sampled from … to …"; for more than 15 minutes also where to find newer figures.
std::string no_points_line(const proto::History::Reply& reply);

}  // namespace gpurota::cli
