// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

namespace nri_api = ::nri::pkg::api::v1alpha1;

// The directory in which scripts/test-nri puts programs that are made with NRI's own library:
// "plugin", "host".
std::filesystem::path NriPrograms();

// A runtime as plugins see one, made with NRI's own library (host/main.go); the test decides which
// pods and containers it has. Thread-compatible.
class ReferenceHost {
 public:
  // Listens for plugins in this directory when it returns.
  static StatusOr<std::unique_ptr<ReferenceHost>> Start(const std::filesystem::path& directory);

  // The socket on which plugins connect.
  std::filesystem::path socket() const { return directory_ / "nri.sock"; }

  // Tells the plugins of an event ("create", "run-pod"; host/main.go names all) and returns their
  // merged answer. kInternal: their error, as a client of the runtime would see it.
  StatusOr<std::string> Tell(std::string_view event, const google::protobuf::Message& request);
  template <typename Response>
  StatusOr<Response> Ask(std::string_view event, const google::protobuf::Message& request) {
    RESMGR_ASSIGN_OR_RETURN(const std::string json, Tell(event, request));
    Response response;
    RESMGR_RETURN_IF_ERROR(FromJson(json, response));
    return response;
  }

  // The updates that plugins asked for by calls of their own since the last time; waits for one.
  StatusOr<std::vector<nri_api::ContainerUpdate>> Updates();
  // Waits until so many plugins have been synchronized since the start.
  Status ExpectSynchronized(int times);

 private:
  explicit ReferenceHost(std::filesystem::path directory) : directory_(std::move(directory)) {}

  static Status FromJson(const std::string& json, google::protobuf::Message& message);
  // The next line that begins with this word, without it; lines of plugins are kept.
  StatusOr<std::string> LineOf(std::string_view word);
  Status ReadLines(std::chrono::steady_clock::time_point end);
  Status Send(std::string_view word, const google::protobuf::Message& request);

  const std::filesystem::path directory_;
  std::unique_ptr<ChildProcess> process_;
  UniqueFd control_;
  std::string unread_;  // less than a line
  std::vector<std::string> lines_;
  int synchronized_ = 0;
};

}  // namespace resmgr::test
