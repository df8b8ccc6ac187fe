// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/rules.h"

#include <algorithm>
#include <array>
#include <optional>

#include <re2/re2.h>

#include "pkg/base/parse.h"

namespace resmgr::dump {

namespace {

// A method with one of these characters is a regular expression.
constexpr std::string_view kPatternCharacters = ".*?+()[]|";
constexpr std::string_view kWildcard = "*";
constexpr std::string_view kRecord = "record";
// Limits of the rules, since a configuration may have any number: they bound the memory, and the
// time to look a method up. No use needs as many.
constexpr size_t kMaxRules = 1000;
constexpr size_t kMaxPatterns = 100;
constexpr int64_t kMaxPatternMemory = int64_t{256} << 10;  // bytes, for each pattern

constexpr std::array<std::pair<std::string_view, Target>, 7> kTargets = {{
    {"off", Target::kOff},
    {"suppress", Target::kOff},
    {"name", Target::kName},
    {"short", Target::kName},
    {"full", Target::kFull},
    {"long", Target::kFull},
    {"count", Target::kCount},
}};

std::optional<Target> ParseTarget(std::string_view name) {
  const auto* const found =
      std::find_if(kTargets.begin(), kTargets.end(),
                   [name](const auto& candidate) { return candidate.first == name; });
  if (found == kTargets.end()) return std::nullopt;
  return found->second;
}

// These words have no effect but are accepted: cri-resource-manager stores a flag for them that it
// never reads. Users end a dump by `reset`.
bool IsIdleKeyword(std::string_view item) {
  return item == "enable" || item == "on" || item == "disable" || item == "off";
}

re2::StringPiece Piece(std::string_view text) {
  return re2::StringPiece(text.data(), text.size());
}

}  // namespace

StatusOr<Rules> Rules::Parse(const std::vector<std::string>& specs) {
  Rules rules;
  RESMGR_RETURN_IF_ERROR(rules.Add(kBuiltIn));
  rules.customized_ = false;
  for (const std::string& spec : specs)
    RESMGR_RETURN_IF_ERROR(rules.Add(spec));
  return rules;
}

Target Rules::Lookup(std::string_view method) const {
  if (const auto found = exact_.find(method); found != exact_.end()) return found->second;
  if (const auto found = exact_.find(kWildcard); found != exact_.end()) return found->second;
  const auto last =
      std::find_if(patterns_.rbegin(), patterns_.rend(), [method](const auto& pattern) {
        return re2::RE2::PartialMatch(Piece(method), *pattern.first);
      });
  return last == patterns_.rend() ? Target::kOff : last->second;
}

Status Rules::Add(std::string_view spec) {
  Target sticky = Target::kFull;
  for (const std::string_view item : Split(spec, ','))
    RESMGR_RETURN_IF_ERROR(AddItem(Trim(item), sticky));
  return OkStatus();
}

Status Rules::AddItem(std::string_view item, Target& sticky) {
  if (item.empty()) return OkStatus();
  if (IsIdleKeyword(item)) {
    customized_ = true;
    return OkStatus();
  }
  if (item == "reset") {
    customized_ = true;
    exact_.clear();
    patterns_.clear();
    return OkStatus();
  }
  const auto parts = Split(item, ':');
  if (parts.size() > 2) {
    return InvalidArgument("invalid dump item '{}': more than one colon", Printable(item));
  }
  if (parts.size() == 2) {
    if (parts[0] == kRecord) return SetRecordFile(parts[1]);
    const auto target = ParseTarget(parts[0]);
    if (!target) {
      return InvalidArgument(
          "invalid dump item '{}': unknown target '{}' (off, short, full, count or record)",
          Printable(item), Printable(parts[0]));
    }
    sticky = *target;
  }
  return AddRule(sticky, parts.back());
}

Status Rules::AddRule(Target target, std::string_view method) {
  customized_ = true;
  // A rule for the method "" could never match: `full:` only sets the target.
  if (method.empty()) return OkStatus();
  if (exact_.size() >= kMaxRules || patterns_.size() >= kMaxPatterns) {
    return InvalidArgument("the dump has more than {} rules or {} patterns", kMaxRules,
                           kMaxPatterns);
  }
  if (method == kWildcard || method.find_first_of(kPatternCharacters) == std::string_view::npos) {
    exact_.insert_or_assign(std::string(method), target);
    return OkStatus();
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxPatternMemory);
  auto pattern = std::make_shared<const re2::RE2>(Piece(method), options);
  if (!pattern->ok()) {
    return InvalidArgument("invalid dump pattern '{}': {}", Printable(method),
                           Printable(pattern->error()));
  }
  patterns_.emplace_back(std::move(pattern), target);
  return OkStatus();
}

Status Rules::SetRecordFile(std::string_view file) {
  if (file.empty()) return InvalidArgument("invalid dump item 'record:': it needs a file");
  if (!record_file_.empty() && record_file_ != file) {
    return InvalidArgument("-dump record: two recordings are asked for: '{}' and '{}'",
                           Printable(record_file_), Printable(file));
  }
  record_file_ = file;
  return OkStatus();
}

}  // namespace resmgr::dump
