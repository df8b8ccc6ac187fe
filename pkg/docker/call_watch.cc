// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/call_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/base/characters.h"
#include "pkg/base/json.h"
#include "pkg/docker/http_status.h"
#include "pkg/docker/request_target.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kOtherPath = "/docker/Other";
constexpr std::array<std::string_view, 7> kActionPaths = {
    "/docker/ContainerCreate", "/docker/ContainerStart",   "/docker/ContainerStop",
    "/docker/ContainerKill",   "/docker/ContainerRestart", "/docker/ContainerUpdate",
    "/docker/ContainerRemove"};  // in the order of Action
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kMethods = {
    {{"GET", "Get"}, {"HEAD", "Head"}, {"POST", "Post"}, {"PUT", "Put"}, {"DELETE", "Delete"}}};
// First parts of dockerd's paths.
constexpr std::array<std::string_view, 22> kParts = {
    "_ping",   "auth",   "build",  "commit",   "configs", "containers", "distribution", "events",
    "exec",    "images", "info",   "networks", "nodes",   "plugins",    "secrets",      "services",
    "session", "swarm",  "system", "tasks",    "version", "volumes"};

// All paths like "/docker/GetImages", by method and part; created once.
const std::vector<std::string>& PassedPaths() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> made;
    for (const auto& method : kMethods) {
      for (std::string_view part : kParts) {
        if (part.starts_with('_')) part.remove_prefix(1);
        std::string name(part);
        name[0] = UpperCase(name[0]);
        made.push_back(fmt::format("/docker/{}{}", method.second, name));
      }
    }
    return made;
  }();
  return paths;
}

std::string_view PathWithoutQuery(std::string_view target) {
  return target.substr(0, target.find('?'));
}

// The first part of a target: "images" for "/v1.41/images/json".
std::string_view FirstPart(std::string_view target) {
  std::string_view path = WithoutVersion(PathWithoutQuery(target));
  if (path.starts_with('/')) path.remove_prefix(1);
  return path.substr(0, path.find('/'));
}

// The one of KnownCallPaths under which a request is counted.
std::string_view CallPathOf(std::string_view method, std::string_view target) {
  if (const auto read = ReadTarget(method, target)) {
    return kActionPaths.at(static_cast<size_t>(read->action));
  }
  const auto* const known =
      std::ranges::find(kMethods, method, &std::pair<std::string_view, std::string_view>::first);
  const auto* const part = std::ranges::find(kParts, FirstPart(target));
  if (known == kMethods.end() || part == kParts.end()) return kOtherPath;
  const auto row = static_cast<size_t>(known - kMethods.begin());
  return PassedPaths().at(row * kParts.size() + static_cast<size_t>(part - kParts.begin()));
}

}  // namespace

std::vector<std::string> KnownCallPaths() {
  std::vector<std::string> paths(kActionPaths.begin(), kActionPaths.end());
  paths.insert(paths.end(), PassedPaths().begin(), PassedPaths().end());
  paths.emplace_back(kOtherPath);
  return paths;
}

CallWatch::Call::Call(CallWatch& watch, std::string_view path, dump::Interest interest,
                      std::string_view method, std::string_view target, bool held)
    : watch_(watch),
      path_(path),
      counter_(watch.metrics_ == nullptr
                   ? nullptr
                   : &watch.metrics_->Calls(path_, held ? Metrics::CallKind::kIntercepted
                                                        : Metrics::CallKind::kPassthrough)),
      interest_(interest),
      began_(Clock::now()) {
  if (counter_ != nullptr) watch_.metrics_->CountInFlight(1);
  if (interest_ == dump::Interest::kNone) return;
  ref_ = {.id = ++watch_.last_id_,
          .path = path_,
          .intercepted = held,
          .start = began_,
          .wall_start = std::chrono::system_clock::now()};
  if (shows()) {
    target_ = JsonText({{"method", method}, {"path", PathWithoutQuery(target)}});
  } else {
    watch_.dumper_->OnRequest(ref_, dump::Payload());
  }
}

void CallWatch::Call::ShowJson(std::string text) {
  watch_.dumper_->OnRequest(ref_, dump::Payload::Json(std::move(text)));
}

void CallWatch::Call::ShowTarget() {
  if (shows()) ShowJson(target_);
}

void CallWatch::Call::ShowRequest(std::string_view body) {
  if (!shows()) return;
  if (path_ == kActionPaths.front()) return ShowJson(std::string(body));
  // Without a body, the target names the container.
  if (body.empty()) return ShowJson(target_);
  const std::string_view without_end = std::string_view(target_).substr(0, target_.size() - 1);
  ShowJson(fmt::format(R"({},"body":{}}})", without_end, body));
}

void CallWatch::Call::ShowForwarded(std::string_view before, const std::string* after) {
  forwarded_ = Clock::now();
  if (!shows() || after == nullptr) return;
  watch_.dumper_->OnChanged(ref_, dump::Payload::Json(std::string(before)), *after);
}

void CallWatch::Call::ShowReply(std::string_view body) {
  answered_ = Clock::now();
  if (shows()) watch_.dumper_->OnReply(ref_, dump::Payload::Json(std::string(body)));
}

void CallWatch::Call::End(int status, std::string_view message) {
  if (std::exchange(ended_, true)) return;
  const int code = static_cast<int>(CodeOfStatus(status));
  if (interest_ != dump::Interest::kNone) {
    const std::string text =
        message.empty() ? fmt::format("status {}", status) : std::string(message);
    watch_.dumper_->OnEnd(ref_, code, text);
  }
  if (counter_ == nullptr) return;
  watch_.metrics_->CountInFlight(-1);
  counter_->Count(code);
  if (lasting_) return;
  const Clock::time_point now = Clock::now();
  Clock::duration engine{0};
  if (forwarded_ != Clock::time_point{}) {
    engine = (answered_ == Clock::time_point{} ? now : answered_) - forwarded_;
  }
  counter_->Took(now - began_ - engine, engine);
}

std::unique_ptr<CallWatch::Call> CallWatch::Begin(std::string_view method, std::string_view target,
                                                  bool held) {
  const std::string_view path = CallPathOf(method, target);
  const dump::Interest interest =
      dumper_ == nullptr ? dump::Interest::kNone : dumper_->WantsMethod(path);
  if (metrics_ == nullptr && interest == dump::Interest::kNone) return nullptr;
  return std::make_unique<Call>(*this, path, interest, method, target, held);
}

bool CallWatch::WantsBodies(std::string_view method, std::string_view target) const {
  if (dumper_ == nullptr || !ReadTarget(method, target)) return false;
  return dumper_->WantsMethod(CallPathOf(method, target)) == dump::Interest::kMessages;
}

}  // namespace resmgr::docker
