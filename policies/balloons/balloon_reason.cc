// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_reason.h"

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kBeforeFewer = "; ";
// The parts behind the text, in this order.
constexpr std::string_view kBorrowed = "; by use CPUs ";
constexpr std::string_view kRoom = "; room CPUs ";
constexpr std::string_view kChosen = "; components ";  // "[a][b]": no type has brackets in its name
constexpr std::string_view kOwn = "; own CPUs ";
constexpr char kBetweenParts = '+';

void AddChosen(const BalloonSetup& setup, const BalloonPart& part, std::string& names) {
  if (setup.type(part.type).balance_components)
    names += fmt::format("[{}]", setup.type(part.parts.front().type).name);
  for (const BalloonPart& below : part.parts)
    AddChosen(setup, below, names);
}

// Removes the last part with this label from the reason and returns it without the label; "" if
// there is none.
std::string TakeEnd(std::string& reason, std::string_view label) {
  const size_t at = reason.rfind(label);
  if (at == std::string::npos) return "";
  std::string part = reason.substr(at + label.size());
  reason.resize(at);
  return part;
}

CpuSet ParsedCpus(std::string_view text) {
  return CpuSet::Parse(text).value_or(CpuSet());
}

}  // namespace

CpuSet BalloonReason::Own() const {
  CpuSet own;
  for (const CpuSet& part : parts)
    own |= part;
  return own;
}

BalloonReason ReadReason(const std::string& reason) {
  BalloonReason read{.text = reason};
  const std::string own = TakeEnd(read.text, kOwn);
  for (const std::string_view part : Split(own, kBetweenParts))
    read.parts.push_back(ParsedCpus(part));
  const std::string chosen = TakeEnd(read.text, kChosen);
  for (size_t at = 0; at < chosen.size(); at = chosen.find('[', at + 1))
    read.chosen.push_back(chosen.substr(at + 1, chosen.find(']', at) - at - 1));
  read.room = ParsedCpus(TakeEnd(read.text, kRoom));
  read.borrowed = ParsedCpus(TakeEnd(read.text, kBorrowed));
  if (read.text.ends_with(kFewerCpus))
    read.text.resize(read.text.size() - kFewerCpus.size() - kBeforeFewer.size());
  return read;
}

std::string EndOfReason(const BalloonSetup& setup, const Balloon& balloon) {
  std::string end;
  const auto add = [&end](std::string_view label, std::string_view part) {
    if (!part.empty()) end += fmt::format("{}{}", label, part);
  };
  add(kBorrowed, balloon.borrowed.ToString());
  add(kRoom, balloon.room.ToString());
  if (balloon.part.parts.empty())
    return fmt::format("{}{}{}", end, kOwn, balloon.cpus().ToString());
  std::string chosen;
  AddChosen(setup, balloon.part, chosen);
  add(kChosen, chosen);
  end += kOwn;
  for (const CpuSet& leaf : balloon.part.Leaves())
    end += leaf.ToString() + kBetweenParts;
  end.pop_back();
  return end;
}

std::string TextForFewerCpus(const std::string& text) {
  return fmt::format("{}{}{}", text, kBeforeFewer, kFewerCpus);
}

std::string TextForWantOfRoom(const std::string& text, const std::string& balloon,
                              const std::string& type) {
  return fmt::format("{}{} in {}, for {} has no CPUs left", kWantOfRoom, text, balloon, type);
}

}  // namespace resmgr
