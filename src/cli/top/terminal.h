// The terminal of `gpurota top`, through ncurses, which sends only changes. One thread, one object.
//
// The destructor restores the terminal, even while this is suspended.
#pragma once

#include "base/result.h"
#include "cli/text/grid.h"
#include "cli/top/keys.h"

#include <memory>
#include <optional>

namespace gpurota::cli::topview {

// Whether ncurses knows the terminal that TERM names.
bool knows_terminal();

class Terminal {
 public:
  // Opens standard input and output. kUnavailable: TERM names no terminal that can be drawn on.
  static Result<std::unique_ptr<Terminal>> open(bool colour);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::size_t width() const;
  std::size_t height() const;
  // Uses the size that the kernel reports.
  void resize();
  // Makes the next show() send everything.
  void redraw();
  void show(const Grid& grid);
  // Empty: no key was pressed.
  std::optional<Key> read_key();
  // leave() restores the terminal for other programs; enter() takes it again.
  void leave();
  void enter();

 private:
  Terminal(void* screen, bool colour) : screen_(screen), colour_(colour) {}

  void* screen_;  // of ncurses
  bool colour_;
};

}  // namespace gpurota::cli::topview
