// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_report.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "pkg/base/count_text.h"

namespace resmgr {
namespace {

constexpr size_t kMostNamed = 5;

// The outcome of one part.
struct PartOutcome {
  bool active = true;
  std::string reason{};
  std::string in_force{};
};

// The first few of them: "24 (nvme0q1), 25 (nvme0q2) and 7 more".
std::string NamesText(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i)
    text.append(text.empty() ? "" : ", ").append(names[i]);
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

class Reporter {
 public:
  Reporter(const ClassPlan& plan, const std::vector<ClassSubject>& subjects,
           const HostKeeper::Result& result)
      : plan_(plan), subjects_(subjects), result_(result) {}

  ClassReport Report() {
    ClassReport report;
    std::map<std::pair<std::string, std::string>, ClassState> classes;
    std::set<std::pair<std::string, std::string>> lacking;
    for (const ClassPart& part : plan_.parts) {
      const PartOutcome outcome = OutcomeOf(part);
      const std::pair key(std::string(part.kind), part.name);
      const bool lacks = part.possible.code() == StatusCode::kNotFound;
      ClassState& known = classes[key];
      known.kind = part.kind;
      known.name = part.name;
      if (known.active && (!outcome.active || known.reason.empty())) known.reason = outcome.reason;
      known.active = known.active && outcome.active;
      if (part.subject == ClassPart::kNoSubject) {
        known.absent = lacks;
        // A container or a pool may lack something else.
        if (lacks && lacking.insert(key).second) known.reason = outcome.reason;
        continue;
      }
      if (lacks) lacking.insert(key);
      const ClassSubject& subject = subjects_[part.subject];
      known.containers.push_back(subject.container);
      if (subject.id.empty()) continue;
      report.containers[subject.id].push_back({.kind = std::string(part.kind),
                                               .name = part.name,
                                               .source = part.source,
                                               .way = std::string(part.way),
                                               .in_force = outcome.in_force,
                                               .active = outcome.active,
                                               .reason = outcome.reason});
    }
    for (auto& [key, known] : classes)
      report.classes.push_back(std::move(known));
    report.absent = plan_.absent;
    report.not_given_back = result_.not_given_back;
    report.notes = result_.notes;
    if (!result_.journal.ok()) report.journal = Message(result_.journal);
    return report;
  }

 private:
  PartOutcome OutcomeOf(const ClassPart& part) const {
    if (!part.possible.ok()) {
      return {.active = false,
              .reason = std::string(Message(part.possible)),
              .in_force = part.in_force};
    }
    PartOutcome outcome{.reason = part.note};
    std::vector<std::string> managed;
    std::vector<std::string> values;
    size_t moved = 0;
    for (const std::string& path : part.paths) {
      const auto found = result_.outcomes.find(path);
      if (found == result_.outcomes.end()) continue;
      const HostOutcome& one = found->second;
      const auto interrupt = plan_.interrupts.find(path);
      const bool is_interrupt = interrupt != plan_.interrupts.end();
      if (one.status.ok()) {
        if (is_interrupt) ++moved;
        std::string line = HostValueLine(one.in_force);
        if (std::ranges::find(values, line) == values.end()) values.push_back(std::move(line));
      } else if (is_interrupt && IsManaged(one.error)) {
        managed.push_back(interrupt->second);
      } else if (is_interrupt && one.status.code() == StatusCode::kNotFound) {
        continue;  // it has gone since it was listed
      } else if (outcome.active) {
        outcome.active = false;
        outcome.reason = Message(one.status);
      }
    }
    if (part.kind == "interrupts") {
      outcome.in_force =
          fmt::format("{} moved", CountText(static_cast<int64_t>(moved), "interrupt"));
      if (outcome.active && !managed.empty())
        outcome.reason =
            fmt::format("the kernel does not let these be moved: {}", NamesText(managed));
    } else {
      outcome.in_force = part.in_force.empty() ? NamesText(values) : part.in_force;
    }
    return outcome;
  }

  const ClassPlan& plan_;
  const std::vector<ClassSubject>& subjects_;
  const HostKeeper::Result& result_;
};

}  // namespace

ClassReport MakeReport(const ClassPlan& plan, const std::vector<ClassSubject>& subjects,
                       const HostKeeper::Result& result) {
  return Reporter(plan, subjects, result).Report();
}

}  // namespace resmgr
