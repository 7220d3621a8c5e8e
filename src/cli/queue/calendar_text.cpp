#include "cli/queue/calendar_text.h"

#include "base/text.h"
#include "cli/args/when.h"
#include "cli/text/ps_doctor_text.h"
#include "cli/text/time_text.h"
#include "client/reason_text.h"
#include "core/local_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace gpurota::cli {
namespace {

// A booking or a lease, in the same form.
struct Entry {
  WallTime begins;
  std::optional<WallTime> ends;
  std::string gpus, user, id, what;
  bool booked = false;
};

std::string joined_labels(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) {
    text += (text.empty() ? "" : ",") + display_text(label, 20);
  }
  return text;
}

std::string share_text(const std::optional<SizeSpec>& memory) {
  if (!memory) return {};
  return memory->percent ? fmt::format("{}% of each", memory->percent)
                         : to_string(memory->bytes) + " of each";
}

// The last column of a booking: its problem, its share, its note.
std::string what_of(const proto::Booking& booking, WallTime now) {
  std::string text = client::reason_text(booking, now);
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  add(share_text(booking.memory));
  if (booking.note) add(display_text(*booking.note, 80));
  return text;
}

Entry entry_of(const proto::Booking& booking, WallTime now) {
  return {.begins = booking.begins,
          .ends = booking.ends,
          .gpus = joined_labels(booking.labels),
          .user = person_text(booking.user, booking.as_name),
          .id = to_string(booking.request_id),
          .what = what_of(booking, now),
          .booked = true};
}

Entry entry_of(const proto::Lease& lease) {
  std::vector<std::string> labels;
  for (const proto::LeaseGpu& gpu : lease.gpus) labels.push_back(label_of(gpu));
  std::string what = lease.kind == proto::LeaseKind::kRun ? "" : to_string(lease.kind);
  if (!lease.ends) what += what.empty() ? "no time limit" : ", no time limit";
  if (lease.note && !lease.note->empty()) {
    what += (what.empty() ? "" : ", ") + display_text(*lease.note, 80);
  }
  return {.begins = lease.since,
          .ends = lease.ends,
          .gpus = joined_labels(labels),
          .user = person_text(lease.user, lease.as_name),
          .id = to_string(lease.lease_id),
          .what = what};
}

std::string clock_of(WallTime time) { return local_time_text(time, time); }

// The hours of an entry on the day that begins at `day`.
std::string hours_text(const Entry& entry, WallTime day, WallTime next, WallTime now) {
  const bool runs = !entry.booked && day <= now;
  const std::string from = runs ? "now" : entry.begins <= day ? "00:00" : clock_of(entry.begins);
  if (!entry.ends) return from + "-";
  return from + "-" + (*entry.ends >= next ? "24:00" : clock_of(*entry.ends));
}

std::vector<Entry> entries_of(const proto::Status::Reply& reply, WallTime now) {
  std::vector<Entry> entries;
  for (const proto::Lease& lease : reply.leases) {
    if (lease.kind != proto::LeaseKind::kFiller) entries.push_back(entry_of(lease));
  }
  for (const proto::Booking& each : reply.bookings.value_or(std::vector<proto::Booking>())) {
    entries.push_back(entry_of(each, now));
  }
  return entries;
}

// RFC 5545, 3.3.11: TEXT.
std::string ical_text(const std::string& text) {
  std::string out;
  for (const char c : display_text(text, 300)) {
    if (c == '\\' || c == ';' || c == ',') out += '\\';
    out += c;
  }
  return out;
}

std::string ical_time(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm fields{};
  (void)::gmtime_r(&seconds, &fields);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &fields));
}

// A content line, folded: at most 75 bytes each, cut only between characters.
std::string ical_line(std::string line) {
  constexpr std::size_t kMost = 75;
  std::string out;
  while (line.size() > kMost) {
    std::size_t at = kMost;
    while (at > 1 && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U) --at;
    out += line.substr(0, at) + "\r\n";
    line = " " + line.substr(at);
  }
  return out + line + "\r\n";
}

std::string ical_event(const Entry& entry, const std::string& host, WallTime now) {
  std::string text = ical_line("BEGIN:VEVENT");
  text += ical_line(fmt::format("UID:{}@{}", entry.id, ical_text(host)));
  text += ical_line("DTSTAMP:" + ical_time(now));
  text += ical_line("DTSTART:" + ical_time(entry.begins));
  text += ical_line("DTEND:" + ical_time(*entry.ends));
  text += ical_line(
      fmt::format("SUMMARY:{}", ical_text(fmt::format("GPU {}: {}", entry.gpus, entry.user))));
  text += ical_line("LOCATION:" + ical_text(host));
  if (!entry.what.empty()) text += ical_line("DESCRIPTION:" + ical_text(entry.what));
  return text + ical_line("END:VEVENT");
}

}  // namespace

std::string calendar_text(const proto::Status::Reply& reply, int days, const Layout& layout,
                          WallTime now) {
  std::vector<Entry> entries = entries_of(reply, now);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.begins < b.begins; });
  Table table({{"DAY"}, {"TIME"}, {"GPU"}, {"USER", false, 6}, {"ID"}, {"WHAT", false, 8}});
  int later = 0;
  for (const Entry& entry : entries) later += entry.begins >= day_of(now, days);
  for (int i = 0; i < days; ++i) {
    const WallTime day = day_of(now, i), next = day_of(now, i + 1);
    std::string title = day_text(day);
    for (const Entry& entry : entries) {
      // An entry without an end is shown only on the first day: the future is unknown.
      const bool here =
          entry.begins < next && (entry.ends ? *entry.ends > std::max(day, now) : i == 0);
      if (!here) continue;
      table.add({{title},
                 {hours_text(entry, day, next, now)},
                 {entry.gpus},
                 {entry.user},
                 {entry.id},
                 {entry.what, Colour::kDim}});
      title.clear();
    }
    if (!title.empty()) table.add({{title}, {"-"}, {}, {}, {}, {}});
  }
  std::string text = table.render(layout);
  if (later > 0) {
    text += fmt::format("{} more later: gpurota calendar --days 30\n", later);
  }
  return text;
}

std::string calendar_ical(const proto::Status::Reply& reply, const std::string& host,
                          WallTime now) {
  std::string text = ical_line("BEGIN:VCALENDAR") + ical_line("VERSION:2.0") +
                     ical_line("PRODID:-//gpurota//gpurota calendar//EN") +
                     ical_line("CALSCALE:GREGORIAN");
  for (const proto::Lease& lease : reply.leases) {
    if (lease.kind != proto::LeaseKind::kReservation || !lease.ends) continue;
    text += ical_event(entry_of(lease), host, now);
  }
  for (const proto::Booking& each : reply.bookings.value_or(std::vector<proto::Booking>())) {
    text += ical_event(entry_of(each, now), host, now);
  }
  return text + ical_line("END:VCALENDAR");
}

std::string booking_line(const proto::Booking& booking, WallTime now) {
  std::string share = share_text(booking.memory);
  if (booking.latency == proto::LatencyClass::kInteractive) share += ", interactive";
  if (booking.compute_percent) share += fmt::format(", {}% compute", *booking.compute_percent);
  if (booking.compute_max_percent) {
    share += fmt::format(", at most {}% compute", *booking.compute_max_percent);
  }
  return fmt::format("{}: GPU {}{} from {} to {}", to_string(booking.request_id),
                     joined_labels(booking.labels), share.empty() ? "" : " (" + share + ")",
                     local_time_text(booking.begins, now), local_time_text(booking.ends, now));
}

std::string booked_text(const std::vector<proto::Booking>& bookings, WallTime now) {
  std::string text;
  for (const proto::Booking& each : bookings) {
    text += (text.empty() ? "booked " : "\nbooked ") + booking_line(each, now);
  }
  if (bookings.empty()) return text;
  return text +
         fmt::format("; to cancel it: gpurota cancel {}", to_string(bookings.back().request_id));
}

std::string explain_booking(const proto::Booking& booking, WallTime now) {
  std::string text = booking_line(booking, now) + "\n";
  text += fmt::format("  booked by {} at {}\n", person_text(booking.user, booking.as_name),
                      clock_text(booking.made, now));
  if (const std::string why = client::reason_text(booking, now); !why.empty()) {
    text += fmt::format("  it cannot begin: {}\n", why);
  } else {
    text += "  becomes a reservation when it begins: gpurota status shows which\n";
  }
  return text;
}

}  // namespace gpurota::cli
