// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/nri/reference_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/sys/unix_socket.h"

namespace resmgr::test {
namespace {

constexpr std::chrono::seconds kHostPatience{20};

}  // namespace

std::filesystem::path NriPrograms() {
  const char* const directory = std::getenv("RESMGR_NRI_PROGRAMS");
  return directory == nullptr ? "" : directory;
}

StatusOr<std::unique_ptr<ReferenceHost>> ReferenceHost::Start(
    const std::filesystem::path& directory) {
  if (NriPrograms().empty()) {
    return FailedPrecondition("RESMGR_NRI_PROGRAMS is not set: use scripts/test-nri");
  }
  std::unique_ptr<ReferenceHost> host(new ReferenceHost(directory));
  const std::filesystem::path control = directory / "control.sock";
  std::filesystem::remove(control);
  RESMGR_ASSIGN_OR_RETURN(
      host->process_, ChildProcess::Start({NriPrograms() / "host", "-control", control, "-socket",
                                           host->socket(), "-plugins", directory / "plugins"},
                                          directory / "host.log"));
  RESMGR_RETURN_IF_ERROR(WaitUntil("the host listens", kHostPatience, [&] {
    if (auto connected = ConnectUnix(control.string()); connected.ok())
      host->control_ = *std::move(connected);
    return host->control_.valid();
  }));
  RESMGR_RETURN_IF_ERROR(WaitUntil("the host takes plugins", kHostPatience,
                                   [&] { return std::filesystem::exists(host->socket()); }));
  return host;
}

Status ReferenceHost::Send(std::string_view word, const google::protobuf::Message& request) {
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(request, &json).ok()) {
    return InvalidArgument("a request has no JSON");
  }
  const std::string line = std::string(word) + " " + json + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t written =
        ::send(control_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (written > 0) {
      sent += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = control_.get(), .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else {
      return Unavailable("the host is gone: {}", std::strerror(errno));
    }
  }
  return OkStatus();
}

Status ReferenceHost::ReadLines(std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  pollfd ready{.fd = control_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, std::max(0, static_cast<int>(left.count()))) <= 0) {
    return DeadlineExceeded("the host says nothing");
  }
  std::array<char, size_t{64} << 10> bytes{};
  const ssize_t count = ::recv(control_.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) return Unavailable("the host has ended: {}", LastLines(directory_ / "host.log"));
  unread_.append(bytes.data(), static_cast<size_t>(count));
  size_t line_end = 0;
  while ((line_end = unread_.find('\n')) != std::string::npos) {
    lines_.push_back(unread_.substr(0, line_end));
    unread_.erase(0, line_end + 1);
    if (lines_.back().starts_with("synchronized ok")) ++synchronized_;
  }
  return OkStatus();
}

StatusOr<std::string> ReferenceHost::LineOf(std::string_view word) {
  const auto end = std::chrono::steady_clock::now() + kHostPatience;
  const std::string start = std::string(word) + " ";
  while (true) {
    const auto line = std::ranges::find_if(
        lines_, [&start](const std::string& each) { return each.starts_with(start); });
    if (line != lines_.end()) {
      std::string rest = line->substr(start.size());
      lines_.erase(line);
      return rest;
    }
    RESMGR_RETURN_IF_ERROR(ReadLines(end));
  }
}

StatusOr<std::string> ReferenceHost::Tell(std::string_view event,
                                          const google::protobuf::Message& request) {
  RESMGR_RETURN_IF_ERROR(Send(event, request));
  RESMGR_ASSIGN_OR_RETURN(const std::string answer, LineOf(event));
  constexpr std::string_view kOk = "ok ";
  if (!answer.starts_with(kOk)) return Internal("{}", answer);
  return answer.substr(kOk.size());
}

Status ReferenceHost::FromJson(const std::string& json, google::protobuf::Message& message) {
  if (google::protobuf::util::JsonStringToMessage(json, &message).ok()) return OkStatus();
  return Internal("the host's answer is no JSON of its message: {}", json);
}

StatusOr<std::vector<nri_api::ContainerUpdate>> ReferenceHost::Updates() {
  RESMGR_ASSIGN_OR_RETURN(const std::string line, LineOf("updates"));
  nri_api::UpdateContainersRequest request;
  RESMGR_RETURN_IF_ERROR(FromJson(line.substr(line.find('{')), request));
  return std::vector<nri_api::ContainerUpdate>(request.update().begin(), request.update().end());
}

Status ReferenceHost::ExpectSynchronized(int times) {
  const auto end = std::chrono::steady_clock::now() + kHostPatience;
  while (synchronized_ < times)
    RESMGR_RETURN_IF_ERROR(ReadLines(end));
  return OkStatus();
}

}  // namespace resmgr::test
