// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/docker/cli_transcript.h"

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "test/support/dockerd/dockerd.h"

namespace resmgr::test {
namespace {

// `docker info` lists them in the order of a map, another one each time.
std::string WithSortedRuntimes(const std::string& text) {
  static const std::regex list(R"((Runtimes: )([^\n]*))");
  std::smatch found;
  if (!std::regex_search(text, found, list)) return text;
  std::vector<std::string> names = absl::StrSplit(found[2].str(), ' ', absl::SkipEmpty());
  std::ranges::sort(names);
  return fmt::format("{}Runtimes: {}{}", found.prefix().str(), fmt::join(names, " "),
                     found.suffix().str());
}

// The text without parts that differ between two runs in front of the same engine.
std::string Comparable(const std::string& text) {
  static const std::regex time(
      R"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(Z|[+-]\d\d:\d\d| [+-]\d{4} UTC)?)");
  static const std::regex ago(
      R"((Less than a second|About a minute|About an hour|\d+ (second|minute|hour|day|month|year)s?)( ago)?)");
  static const std::regex unix_time(R"(\b1\d{9}(\.\d+)?\b)");
  static const std::regex process(R"("Pid": \d+)");
  // Columns are as wide as the times in them.
  static const std::regex spaces(" {2,}");
  // The number of progress messages of docker depends on the time.
  static const std::regex progress(R"((Sending build context to Docker daemon +[\d.]+[kM]?B\r+)+)");
  // docker prints it where its wait ends before the process does: seen in some runs, not in all.
  static const std::regex wait_ended(
      R"re(time="TIME" level=error msg="error waiting for container: context canceled"\n)re");
  std::string result = std::regex_replace(text, time, "TIME");
  result = std::regex_replace(result, progress, "PROGRESS\r");
  result = WithSortedRuntimes(std::regex_replace(result, wait_ended, ""));
  result = std::regex_replace(result, ago, "AGO");
  result = std::regex_replace(result, unix_time, "TIME");
  result = std::regex_replace(result, process, R"("Pid": PID)");
  return std::regex_replace(result, spaces, "  ");
}

}  // namespace

CliProcess::Result CliTranscript::Run(const Arguments& arguments, std::string_view input) {
  const auto process = Begin(arguments);
  if (process == nullptr) return {};
  // A command that failed early reads none of its input.
  if (!input.empty()) (void)process->Type(input);
  process->EndInput();
  return Finish(arguments, *process);
}

std::unique_ptr<CliProcess> CliTranscript::Begin(const Arguments& arguments, bool terminal) {
  std::vector<std::string> argv = {DockerProgram(), "-H", host_};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto process = CliProcess::Start(argv, directory_, terminal);
  if (!process.ok()) {
    ADD_FAILURE() << Describe(process.status());
    return nullptr;
  }
  return *std::move(process);
}

CliProcess::Result CliTranscript::Finish(const Arguments& arguments, CliProcess& process) {
  auto result = process.Wait();
  if (!result.ok()) {
    ADD_FAILURE() << fmt::format("docker {}: {}", fmt::join(arguments, " "),
                                 Describe(result.status()));
    return {};
  }
  Note(arguments, *result);
  return *std::move(result);
}

void CliTranscript::Note(const Arguments& arguments, const CliProcess::Result& result) {
  lines_.push_back(
      fmt::format("docker {} → {}\n{}{}", Normalize(fmt::format("{}", fmt::join(arguments, " "))),
                  result.exit_code, Normalize(result.output), Normalize(result.errors)));
}

std::string CliTranscript::Normalize(const std::string& text) {
  static const std::regex id(R"(\b([0-9a-f]{64}|[0-9a-f]{12})\b)");
  std::string result;
  auto rest = text.cbegin();
  for (auto it = std::sregex_iterator(text.begin(), text.end(), id); it != std::sregex_iterator();
       ++it) {
    result.append(rest, text.cbegin() + it->position());
    // Short ones are the begin of long ones.
    const size_t number = ids_.emplace(it->str().substr(0, 12), ids_.size()).first->second;
    result.append(fmt::format("ID{}", number));
    rest = text.cbegin() + it->position() + it->length();
  }
  result.append(rest, text.cend());
  return Comparable(result);
}

}  // namespace resmgr::test
