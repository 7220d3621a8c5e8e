#include "web/viewers.h"

#include "base/make_room.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <sys/socket.h>

namespace gpurota::web {

std::string Viewers::who_has_most(const std::string& group) const {
  return who_makes_room(
      viewers_, [](const Viewer& each) { return each.group; }, group);
}

bool Viewers::has_room(const std::string& group) const {
  return viewers_.size() < most_ || who_has_most(group) != group;
}

void Viewers::add(Stream socket, std::string group, std::string head, Clock::time_point now) {
  if (viewers_.size() >= most_) {
    const std::string who = who_has_most(group);
    const auto oldest = std::find_if(viewers_.begin(), viewers_.end(),
                                     [&](const Viewer& each) { return each.group == who; });
    if (oldest != viewers_.end()) viewers_.erase(oldest);
  }
  Viewer& viewer = viewers_.emplace_back();
  viewer.socket = std::move(socket);
  viewer.group = std::move(group);
  viewer.head = std::move(head);
  viewer.sending = last_;
  viewer.taken_at = now;
  send(viewer, now);
  remove_closed();
}

void Viewers::show(std::string event, Clock::time_point now) {
  last_ = std::make_shared<const std::string>(std::move(event));
  for (Viewer& viewer : viewers_) {
    if (has_more(viewer)) {
      viewer.next = last_;
      continue;
    }
    viewer.sending = last_;
    viewer.taken_at = now;
    send(viewer, now);
  }
  remove_closed();
}

void Viewers::send(Viewer& viewer, Clock::time_point now) {
  while (has_more(viewer)) {
    const bool is_head = !viewer.head.empty();
    const std::string_view rest =
        std::string_view(is_head ? viewer.head : *viewer.sending).substr(viewer.sent);
    const ssize_t sent = viewer.socket.send(rest);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return viewer.socket.reset();
    viewer.taken_at = now;
    viewer.sent += static_cast<std::size_t>(sent);
    if (static_cast<std::size_t>(sent) < rest.size()) continue;
    viewer.sent = 0;
    if (is_head) {
      viewer.head.clear();
    } else {
      viewer.sending = std::exchange(viewer.next, nullptr);
    }
  }
}

// A viewer's input is ignored; only its hangup matters.
void Viewers::read(Viewer& viewer) {
  std::array<char, 4096> piece{};
  const ssize_t got = viewer.socket.receive(piece.data(), piece.size());
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) viewer.socket.reset();
}

void Viewers::add_polled(std::vector<pollfd>& polled) const {
  for (const Viewer& viewer : viewers_) {
    const short events = static_cast<short>(has_more(viewer) ? POLLIN | POLLOUT : POLLIN);
    polled.push_back({viewer.socket.fd(), events, 0});
  }
}

void Viewers::on_polled(std::vector<pollfd>::const_iterator results, Clock::time_point now) {
  for (Viewer& viewer : viewers_) {
    const short seen = (results++)->revents;
    if ((seen & (POLLIN | POLLERR | POLLHUP)) != 0) read(viewer);
    if (viewer.socket && (seen & POLLOUT) != 0) send(viewer, now);
    if (has_more(viewer) && now - viewer.taken_at >= kPatience) viewer.socket.reset();
  }
  remove_closed();
}

Viewers::Clock::time_point Viewers::next_deadline() const {
  auto next = Clock::time_point::max();
  for (const Viewer& viewer : viewers_) {
    if (has_more(viewer)) next = std::min(next, viewer.taken_at + kPatience);
  }
  return next;
}

void Viewers::remove_closed() {
  viewers_.remove_if([](const Viewer& viewer) { return !viewer.socket; });
  if (viewers_.empty()) last_.reset();  // would be out of date for the next viewer
}

}  // namespace gpurota::web
