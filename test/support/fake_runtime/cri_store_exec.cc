// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <fmt/format.h>

#include "test/support/fake_runtime/cri_store.h"
#include "test/support/fake_runtime/cri_store_internal.h"

namespace resmgr::test {

namespace {

// Exit status of a shell for a command that it does not find.
constexpr int kNoSuchCommand = 127;

}  // namespace

grpc::Status CriStore::ExecSync(const cri::ExecSyncRequest& request,
                                cri::ExecSyncResponse* response) {
  const auto found = FindById(containers_, request.container_id());
  if (found == containers_.end()) return NoSuch("container", request.container_id());
  const Container& container = found->second;
  if (container.state != cri::CONTAINER_RUNNING) return Unknown("container is not running");

  std::string command;
  for (const std::string& word : request.cmd())
    command += (command.empty() ? "" : " ") + word;
  if (command.find("/proc/self/status") != std::string::npos) {
    const std::string& mems = container.resources.cpuset_mems();
    response->set_stdout(fmt::format("Name:\tcat\nCpus_allowed_list:\t{}\nMems_allowed_list:\t{}\n",
                                     AllowedCpus(container), mems.empty() ? "0" : mems));
  } else if (request.cmd_size() > 0 && request.cmd(0) == "echo") {
    response->set_stdout(command.substr(std::min(command.size(), std::string("echo ").size())) +
                         "\n");
  } else if (command != "true") {
    response->set_stderr(command + ": not found\n");
    response->set_exit_code(kNoSuchCommand);
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::Exec(const cri::ExecRequest& request, cri::ExecResponse* response) {
  if (FindById(containers_, request.container_id()) == containers_.end()) {
    return NoSuch("container", request.container_id());
  }
  response->set_url("http://127.0.0.1:1/exec/" + request.container_id());
  return grpc::Status::OK;
}

grpc::Status CriStore::Attach(const cri::AttachRequest& request, cri::AttachResponse* response) {
  if (FindById(containers_, request.container_id()) == containers_.end()) {
    return NoSuch("container", request.container_id());
  }
  response->set_url("http://127.0.0.1:1/attach/" + request.container_id());
  return grpc::Status::OK;
}

}  // namespace resmgr::test
