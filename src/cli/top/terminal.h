// The terminal of `gpurota top`, by ncurses, which sends only what has changed. One thread, one
// object.
//
// The terminal is as it was found when this goes, also while it is suspended.
#pragma once

#include "base/result.h"
#include "cli/text/grid.h"
#include "cli/top/keys.h"

#include <memory>
#include <optional>

namespace gpurota::cli::topview {

// Whether the machine knows how to draw on the terminal that TERM names.
bool knows_terminal();

class Terminal {
 public:
  // Of standard input and output. kUnavailable: TERM names nothing that can be drawn on.
  static Result<std::unique_ptr<Terminal>> open(bool colour);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::size_t width() const;
  std::size_t height() const;
  // Takes over the size that the kernel knows.
  void resize();
  // The next show() sends everything.
  void redraw();
  void show(const Grid& grid);
  // Empty: no key was pressed.
  std::optional<Key> read_key();
  // Gives the terminal back, and takes it again.
  void leave();
  void enter();

 private:
  Terminal(void* screen, bool colour) : screen_(screen), colour_(colour) {}

  void* screen_;  // ncurses' own
  bool colour_;
};

}  // namespace gpurota::cli::topview
