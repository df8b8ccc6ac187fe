// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/request_target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/percent.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kContainers = "/containers/";

// The first value of the query parameter.
std::string Parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    if (pair.find(';') != std::string_view::npos) continue;
    if (PercentDecoded(pair.substr(0, equals), UrlPart::kQuery) != name) continue;
    if (equals == std::string_view::npos) return "";
    if (const auto value = PercentDecoded(pair.substr(equals + 1), UrlPart::kQuery)) return *value;
  }
  return "";
}

// Whether dockerd reads the value of a parameter as true.
bool IsTrue(std::string_view value) {
  value = Trim(value);
  return !value.empty() &&
         std::ranges::none_of(std::array<std::string_view, 4>{"0", "no", "false", "none"},
                              [value](auto each) { return EqualsIgnoreCase(value, each); });
}

// The minor version of a path that begins with "/v1.".
std::optional<uint64_t> MinorOf(std::string_view path) {
  constexpr std::string_view kFirst = "/v1.";
  if (!path.starts_with(kFirst)) return std::nullopt;
  path.remove_prefix(kFirst.size());
  return ParseUint(path.substr(0, path.find('/')));
}

// Whether dockerd answers such a path only with a redirection.
bool IsUnclean(std::string_view path) {
  for (const std::string_view part : {"//", "/./", "/../"})
    if (path.find(part) != std::string_view::npos) return true;
  return path.ends_with("/.") || path.ends_with("/..");
}

// The path of an absolute URL, "http://host/path" or "x:/path"; dockerd ignores scheme and host.
std::string_view WithoutHost(std::string_view target) {
  const size_t colon = target.find(':');
  if (target.starts_with('/') || colon == std::string_view::npos) return target;
  target.remove_prefix(colon + 1);
  if (!target.starts_with("//")) return target;
  const size_t path = target.find('/', 2);
  return path == std::string_view::npos ? "" : target.substr(path);
}

std::optional<Action> ActionOf(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, Action>, 5> kWords = {
      {{"start", Action::kStart},
       {"stop", Action::kStop},
       {"kill", Action::kKill},
       {"restart", Action::kRestart},
       {"update", Action::kUpdate}}};
  const auto* const found =
      std::ranges::find(kWords, word, &std::pair<std::string_view, Action>::first);
  if (found == kWords.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<RequestTarget> ReadTarget(std::string_view method, std::string_view target) {
  if (method != "POST" && method != "DELETE") return std::nullopt;
  const size_t question = target.find('?');
  const std::string_view query =
      question == std::string_view::npos ? "" : target.substr(question + 1);
  const auto decoded = PercentDecoded(WithoutHost(target.substr(0, question)), UrlPart::kPath);
  if (!decoded || IsUnclean(*decoded)) return std::nullopt;
  std::string_view path = WithoutVersion(*decoded);
  if (!path.starts_with(kContainers)) return std::nullopt;
  path.remove_prefix(kContainers.size());
  RequestTarget read;
  read.api_minor = MinorOf(*decoded);
  if (method == "DELETE") {
    // Only a link goes, and the container that it names goes on running.
    if (IsTrue(Parameter(query, "link"))) return std::nullopt;
    read.action = Action::kRemove;
    read.container = path;
  } else if (path == "create") {
    read.name = Parameter(query, "name");
    if (read.name.starts_with('/')) read.name.erase(0, 1);
    return read;
  } else {
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto action = ActionOf(path.substr(slash + 1));
    if (!action) return std::nullopt;
    read.action = *action;
    read.container = path.substr(0, slash);
    if (read.action == Action::kKill) read.signal = Parameter(query, "signal");
  }
  if (read.container.empty()) return std::nullopt;
  return read;
}

std::string_view WithoutVersion(std::string_view path) {
  if (!path.starts_with("/v")) return path;
  const size_t end = path.find_first_not_of("0123456789.", 2);
  return end == std::string_view::npos || end == 2 || path[end] != '/' ? path : path.substr(end);
}

bool IsKill(std::string_view signal) {
  return signal.empty() || signal == "9" || EqualsIgnoreCase(signal, "KILL") ||
         EqualsIgnoreCase(signal, "SIGKILL");
}

}  // namespace resmgr::docker
