// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/interrupts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "pkg/base/parse.h"
#include "pkg/kube/glob.h"

namespace resmgr {
namespace {

std::optional<int> NumberOf(std::string_view text) {
  const std::optional<int64_t> number = ParseInt(text);
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

// Takes a word off the front.
std::string_view TakeWord(std::string_view& line) {
  line = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

// The texts by the numbers. The first line has one word for each counter of the others.
std::map<int, std::string> ParseInterrupts(std::string_view text) {
  std::map<int, std::string> texts;
  const std::vector<std::string_view> lines = Split(text, '\n');
  std::string_view head = lines[0];
  size_t counters = 0;
  while (!TakeWord(head).empty())
    ++counters;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    std::string_view word = TakeWord(line);
    if (!word.ends_with(':')) continue;
    word.remove_suffix(1);
    const std::optional<int> number = NumberOf(word);
    if (!number) continue;
    for (size_t counter = 0; counter < counters; ++counter)
      TakeWord(line);
    texts.emplace(*number, Trim(line));
  }
  return texts;
}

}  // namespace

std::string_view Interrupt::name() const {
  return std::string_view(text).substr(text.find_last_of(" \t") + 1);
}

std::string Interrupt::ToString() const {
  return text.empty() ? fmt::format("{}", number)
                      : fmt::format("{} ({})", number, Printable(name(), 64));
}

bool Interrupt::Matches(std::string_view glob) const {
  return MatchesGlob(glob, fmt::format("{}", number)) || MatchesGlob(glob, name()) ||
         MatchesGlob(glob, text);
}

std::vector<Interrupt> FindInterrupts(HostFiles& files) {
  std::map<int, std::string> texts;
  if (const StatusOr<std::string> text = files.Read("proc/interrupts"); text.ok())
    texts = ParseInterrupts(*text);
  std::vector<Interrupt> interrupts;
  for (const std::string& entry : files.List("proc/irq")) {
    const std::optional<int> number = NumberOf(entry);
    if (!number) continue;
    const auto text = texts.find(*number);
    interrupts.push_back({*number, text == texts.end() ? "" : text->second});
  }
  std::ranges::sort(interrupts, {}, &Interrupt::number);
  return interrupts;
}

bool IsControllable(const Interrupt& interrupt, const std::vector<std::string>& globs) {
  return std::ranges::any_of(
      globs, [&interrupt](const std::string& glob) { return interrupt.Matches(glob); });
}

}  // namespace resmgr
