// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/problems_watch.h"

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"
#include "pkg/kube/report_limits.h"

namespace resmgr {
namespace {

// The Event's reason, which must be a word in CamelCase: "ProblemCpuManagerOn" for
// "cpu-manager-on".
std::string ReasonOf(std::string_view kind) {
  std::string reason = "Problem";
  bool first = true;
  for (const char c : kind) {
    if (c != '-') reason += first && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    first = c == '-';
  }
  return reason;
}

}  // namespace

PodEvent NodeEventOf(const Problem& first, size_t count) {
  const std::string more = count > 1 ? fmt::format(" (and {} more)", count - 1) : "";
  // The runbook comes last and is never cut off.
  const std::string runbook = "; see " + RunbookOf(first.kind);
  const std::string text =
      first.message + more + (first.next.empty() ? "" : "; try: " + first.next);
  const size_t room = kLongestEventMessage - runbook.size();
  return NodeEvent(true, ReasonOf(first.kind), Utf8Cut(Printable(text, room), room) + runbook,
                   std::chrono::system_clock::now());
}

ProblemsWatch::ProblemsWatch(Options options)
    : options_(std::move(options)),
      timer_(options_.loop.Every(options_.period, [this] { Look(); })) {}

void ProblemsWatch::Look() {
  Counts counts;
  for (const std::string_view kind : kProblemKinds)
    counts.emplace(kind, 0);
  std::map<std::string, const Problem*> firsts;
  const std::vector<Problem> problems = options_.problems();
  for (const Problem& problem : problems) {
    ++counts[problem.kind];
    firsts.emplace(problem.kind, &problem);
  }
  for (const auto& [kind, first] : firsts)
    if (counts_[kind] == 0) options_.tell(NodeEventOf(*first, counts[kind]));
  counts_ = std::move(counts);
  options_.count(counts_);
}

std::vector<Problem> ProblemTimes::Completed(std::vector<Problem> problems, Time now) {
  std::map<Key, Time> listed;
  for (Problem& problem : problems) {
    if (problem.since != Time()) continue;
    Key key{problem.kind, problem.objects.empty() ? std::vector{problem.message} : problem.objects};
    const auto known = since_.find(key);
    problem.since = known == since_.end() ? now : known->second;
    listed.emplace(std::move(key), problem.since);
  }
  since_ = std::move(listed);
  return problems;
}

}  // namespace resmgr
