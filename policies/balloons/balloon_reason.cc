// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_reason.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "pkg/allocator/want_of_room.h"

namespace resmgr {
namespace {

constexpr std::string_view kBorrowed = "; by use CPUs ";
constexpr std::string_view kOwn = "; own CPUs ";
constexpr std::string_view kBeforeFewer = "; ";

CpuSet ParsedCpus(std::string_view text) {
  return CpuSet::Parse(text).value_or(CpuSet());
}

}  // namespace

std::string WithOwnCpus(const std::string& text, const CpuSet& own, const CpuSet& borrowed) {
  const std::string by_use =
      borrowed.empty() ? "" : fmt::format("{}{}", kBorrowed, borrowed.ToString());
  return fmt::format("{}{}{}{}", text, by_use, kOwn, own.ToString());
}

std::string ThatLacksCpus(const std::string& text) {
  return fmt::format("{}{}{}", text, kBeforeFewer, kFewerCpus);
}

std::string TextForWantOfRoom(const std::string& text, const std::string& balloon,
                              const std::string& type) {
  return fmt::format("{}{} in {}, for {} has no CPUs left", kWantOfRoom, text, balloon, type);
}

std::string TextOfReason(const std::string& reason) {
  std::string text = reason.substr(0, reason.rfind(kOwn));
  text.resize(std::min(text.rfind(kBorrowed), text.size()));
  if (text.ends_with(kFewerCpus))
    text.resize(text.size() - kFewerCpus.size() - kBeforeFewer.size());
  return text;
}

CpuSet OwnCpusOfReason(const std::string& reason) {
  const size_t at = reason.rfind(kOwn);
  if (at == std::string::npos) return {};
  return ParsedCpus(std::string_view(reason).substr(at + kOwn.size()));
}

CpuSet BorrowedCpusOfReason(const std::string& reason) {
  const size_t end = reason.rfind(kOwn);
  const size_t at = reason.rfind(kBorrowed);
  if (at == std::string::npos || end == std::string::npos || at > end) return {};
  const size_t begin = at + kBorrowed.size();
  return ParsedCpus(std::string_view(reason).substr(begin, end - begin));
}

}  // namespace resmgr
