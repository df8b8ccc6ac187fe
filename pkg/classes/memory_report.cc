// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_report.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr const char* kKind = "memory";
constexpr const char* kOnlyFiles = "annotated files";
constexpr const char* kNeedsV2 = "classes of memory need cgroup v2";

// As the kernel reads an amount: "64M" are 64 << 20 bytes.
std::optional<uint64_t> AmountOf(std::string_view text) {
  constexpr std::string_view kUnits = "kmgtpe";
  constexpr unsigned kBitsOfUnit = 10;
  unsigned shift = 0;
  if (!text.empty()) {
    const char last = text.back();
    const size_t unit =
        kUnits.find(static_cast<char>(last >= 'A' && last <= 'Z' ? last - 'A' + 'a' : last));
    if (unit != std::string_view::npos) {
      shift = static_cast<unsigned>(unit + 1) * kBitsOfUnit;
      text.remove_suffix(1);
    }
  }
  const std::optional<uint64_t> number = ParseUint(text);
  if (!number || *number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

// The kernel keeps whole pages.
bool SameAmount(std::string_view wanted, std::string_view read) {
  if (wanted == read) return true;
  const auto page = static_cast<uint64_t>(::getpagesize());
  const std::optional<uint64_t> a = AmountOf(wanted);
  const std::optional<uint64_t> b = AmountOf(read);
  return a && b && *a / page == *b / page;
}

ClassState& ClassOf(std::string_view name, ClassReport& report) {
  const auto known = std::ranges::find_if(report.classes, [name](const ClassState& one) {
    return one.kind == kKind && one.name == name;
  });
  if (known != report.classes.end()) return *known;
  return report.classes.emplace_back(ClassState{.kind = kKind, .name = std::string(name)});
}

}  // namespace

void AddMemoryClasses(const std::vector<MemoryClassSubject>& subjects, const ClassesConfig& config,
                      bool unified,
                      const std::function<StatusOr<std::string>(const MemoryClassSubject& subject,
                                                                const std::string& file)>& read,
                      ClassReport& report) {
  const auto fail = [](ClassState& state, std::string why) {
    if (std::exchange(state.active, false)) state.reason = std::move(why);
  };
  for (const MemoryClassConfig& one : config.memory) {
    ClassState& state = ClassOf(one.name, report);
    if (!unified) fail(state, kNeedsV2);
  }
  for (const MemoryClassSubject& subject : subjects) {
    ContainerClass mine{.kind = kKind,
                        .name = subject.wish.name.empty() ? kOnlyFiles : subject.wish.name,
                        .source = subject.wish.source,
                        .way = "at creation"};
    if (!unified) mine.reason = kNeedsV2;
    for (const auto& [file, wanted] : subject.wish.files) {
      if (subject.id.empty() || !mine.reason.empty()) break;
      const StatusOr<std::string> now = read(subject, file);
      if (!now.ok()) {
        mine.reason = Message(now.status());
        break;
      }
      const std::string_view text = Trim(*now);
      if (!SameAmount(wanted, text)) {
        mine.reason = fmt::format("{} is {} and not {}, which is set at creation", file,
                                  Printable(text, 64), wanted);
      }
      mine.in_force +=
          fmt::format("{}{} {}", mine.in_force.empty() ? "" : ", ", file, Printable(text, 64));
    }
    mine.active = mine.reason.empty();
    ClassState& state = ClassOf(mine.name, report);
    state.containers.push_back(subject.container);
    if (!mine.active)
      fail(state, unified ? fmt::format("{}: {}", subject.container, mine.reason) : mine.reason);
    if (!subject.id.empty()) report.containers[subject.id].push_back(std::move(mine));
  }
}

}  // namespace resmgr
