#include "cli/top/terminal.h"

#include "cli/text/output.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cwchar>
#include <exception>

#include <sys/ioctl.h>
#include <unistd.h>

// The macros of ncurses have names such as move and clear.
#define NCURSES_NOMACROS 1
#include <ncurses.h>

// Declared here, because the macros of <term.h> have names such as lines and columns.
extern "C" int setupterm(const char* term, int fd, int* error);

namespace gpurota::cli::topview {
namespace {

constexpr int kEscapeDelayMs = 25;
constexpr int kManyColours = 256;
constexpr int kAllColours = 1 << 24;

// The colour of a tone: one of the first eight (-1: the terminal's own), one of 256, and an RGB
// value. Colour-blind people can tell orange, blue, sky and vermilion apart.
struct Shade {
  int few, many, all;
};
constexpr std::array<Shade, kTones> kShades = {{{-1, -1, -1},
                                                {-1, 244, 0x808080},
                                                {-1, -1, -1},
                                                {COLOR_GREEN, 36, 0x009E73},
                                                {COLOR_YELLOW, 220, 0xF0C000},
                                                {COLOR_RED, 203, 0xFF5F5F},
                                                {COLOR_BLUE, 33, 0x0087FF},
                                                {COLOR_MAGENTA, 214, 0xE69F00},
                                                {COLOR_CYAN, 117, 0x56B4E9},
                                                {COLOR_YELLOW, 202, 0xD55E00},
                                                {COLOR_CYAN, 79, 0x5FD7AF}}};

bool start_colours() {
  if (!has_colors() || start_color() == ERR) return false;
  const int own = use_default_colors() == ERR ? COLOR_BLACK : -1;
  for (std::size_t i = 0; i < kTones; ++i) {
    const Shade& shade = kShades[i];
    int colour = COLORS >= kAllColours    ? shade.all
                 : COLORS >= kManyColours ? shade.many
                                          : shade.few;
    if (colour < 0) colour = own < 0 ? -1 : COLOR_WHITE;
    (void)init_extended_pair(static_cast<int>(i) + 1, colour, own);
  }
  return true;
}

attr_t attributes_of(const Style& style, bool colour) {
  attr_t attributes = A_NORMAL;
  if (style.bold || style.tone == Tone::kHead) attributes |= A_BOLD;
  if (style.reverse) attributes |= A_REVERSE;
  if (!colour && style.tone == Tone::kBad) attributes |= A_BOLD;
  const bool has_grey = colour && COLORS >= kManyColours;
  if (style.tone == Tone::kDim && !has_grey && !style.reverse) attributes |= A_DIM;
  return attributes;
}

// At most as many characters as a cell of ncurses holds.
std::array<wchar_t, CCHARW_MAX + 1> wide_text(const std::string& text) {
  std::array<wchar_t, CCHARW_MAX + 1> wide{};
  std::mbstate_t state{};
  const char* from = text.c_str();
  if (std::mbsrtowcs(wide.data(), &from, CCHARW_MAX, &state) == static_cast<std::size_t>(-1)) {
    return {L'?'};
  }
  return wide;
}

std::string narrow_text(wint_t character) {
  std::array<char, 16> bytes{};
  std::mbstate_t state{};
  const std::size_t size = std::wcrtomb(bytes.data(), static_cast<wchar_t>(character), &state);
  return size > bytes.size() ? std::string() : std::string(bytes.data(), size);
}

Key key_of_code(wint_t code) {
  switch (code) {
    case KEY_UP:
      return {Key::kUp};
    case KEY_DOWN:
      return {Key::kDown};
    case KEY_PPAGE:
      return {Key::kPageUp};
    case KEY_NPAGE:
      return {Key::kPageDown};
    case KEY_HOME:
      return {Key::kHome};
    case KEY_END:
      return {Key::kEnd};
    case KEY_ENTER:
      return {Key::kEnter};
    case KEY_BACKSPACE:
    case KEY_DC:
      return {Key::kBackspace};
    // As in htop.
    case KEY_F(1):
      return {Key::kCharacter, "?"};
    case KEY_F(3):
    case KEY_F(4):
      return {Key::kCharacter, "/"};
    case KEY_F(5):
      return {Key::kCharacter, "t"};
    case KEY_F(6):
      return {Key::kCharacter, "s"};
    case KEY_F(10):
      return {Key::kCharacter, "q"};
    default:
      return {Key::kCharacter, ""};  // no meaning here
  }
}

Key key_of_character(wint_t character) {
  constexpr wint_t kEscapeCode = 27, kDeleteCode = 127, kControlH = 8, kControlU = 21;
  if (character == '\n' || character == '\r') return {Key::kEnter};
  if (character == kEscapeCode) return {Key::kEscape};
  if (character == kDeleteCode || character == kControlH) return {Key::kBackspace};
  if (character == kControlU) return {Key::kClear};
  return {Key::kCharacter, narrow_text(character)};
}

// For an unexpected exception, such as lack of memory.
[[noreturn]] void end_with_terminal_restored() {
  (void)endwin();
  std::abort();
}

}  // namespace

bool knows_terminal() {
  int error = 0;
  return setupterm(nullptr, STDOUT_FILENO, &error) == OK;
}

Result<std::unique_ptr<Terminal>> Terminal::open(bool colour) {
  std::set_terminate(end_with_terminal_restored);
  (void)set_escdelay(kEscapeDelayMs);
  SCREEN* const screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* const name = std::getenv("TERM");
    return fail(
        Code::kUnavailable,
        fmt::format("cannot draw on the terminal '{}' (TERM): gpurota top --once prints one "
                    "picture",
                    display_lines(name == nullptr ? "" : name)));
  }
  (void)cbreak();
  (void)noecho();
  (void)nonl();
  (void)keypad(stdscr, TRUE);
  (void)nodelay(stdscr, TRUE);
  (void)leaveok(stdscr, TRUE);
  (void)curs_set(0);
  return std::unique_ptr<Terminal>(new Terminal(screen, colour && start_colours()));
}

Terminal::~Terminal() {
  leave();
  delscreen(static_cast<SCREEN*>(screen_));
}

std::size_t Terminal::width() const { return static_cast<std::size_t>(getmaxx(stdscr)); }
std::size_t Terminal::height() const { return static_cast<std::size_t>(getmaxy(stdscr)); }

void Terminal::resize() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return;
  if (size.ws_col == width() && size.ws_row == height()) return;
  (void)resizeterm(size.ws_row, size.ws_col);
  redraw();
}

void Terminal::redraw() { (void)clearok(stdscr, TRUE); }

void Terminal::show(const Grid& grid) {
  (void)werase(stdscr);
  for (std::size_t y = 0; y < grid.height(); ++y) {
    for (std::size_t x = 0; x < grid.width(); ++x) {
      const GridCell& cell = grid.at(x, y);
      if (cell.text.empty() || (cell.text == " " && cell.style == Style{})) continue;
      const short pair =
          colour_ ? static_cast<short>(static_cast<int>(cell.style.tone) + 1) : short{0};
      cchar_t shown{};
      (void)setcchar(&shown, wide_text(cell.text).data(), attributes_of(cell.style, colour_), pair,
                     nullptr);
      (void)mvwadd_wch(stdscr, static_cast<int>(y), static_cast<int>(x), &shown);
    }
  }
  (void)wrefresh(stdscr);
}

std::optional<Key> Terminal::read_key() {
  wint_t character = 0;
  const int kind = wget_wch(stdscr, &character);
  if (kind == KEY_CODE_YES) return key_of_code(character);
  if (kind == OK) return key_of_character(character);
  return std::nullopt;
}

void Terminal::leave() {
  (void)curs_set(1);
  (void)endwin();
}

void Terminal::enter() {
  (void)curs_set(0);
  redraw();
  (void)wrefresh(stdscr);
  resize();
}

}  // namespace gpurota::cli::topview
