// SPDX-License-Identifier: Apache-2.0
#include "test/integration/control_fixture.h"

#include <charconv>
#include <chrono>
#include <fstream>
#include <sstream>

#include <grpcpp/grpcpp.h>

#include "cmd/cri-resmgr-ctl/cli.h"
#include "pkg/api/config.grpc.pb.h"
#include "test/support/scrape/scrape.h"

namespace resmgr::test {

void ControlTest::StartWithMetrics(const std::vector<std::string>& more) {
  StartRuntime();
  std::vector<std::string> flags = StaticFlags({"-metrics-address", "127.0.0.1:0"});
  flags.insert(flags.end(), more.begin(), more.end());
  StartDaemon(flags);
  if (HasFatalFailure()) return;
  ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
}

std::string ControlTest::Counts() const {
  constexpr std::string_view kBefore = "metrics are served on port ";
  std::string log = daemon_->Log();
  const size_t at = log.find(kBefore);
  if (at == std::string::npos) return log;
  int port = 0;
  std::from_chars(log.data() + at + kBefore.size(), log.data() + log.size(), port);
  return Scrape(port);
}

ControlTest::Shown ControlTest::Ctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"cri-resmgr-ctl", "-socket", Path("admin.sock")});
  std::vector<const char*> argv;
  argv.reserve(arguments.size());
  for (const std::string& argument : arguments)
    argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  Shown shown;
  shown.exit_code =
      RunCli(static_cast<int>(argv.size()), argv.data(), "test", AllCommands(), out, err);
  shown.out = out.str();
  shown.err = err.str();
  return shown;
}

std::string ControlTest::SetConfig(const std::map<std::string, std::string>& data) const {
  const auto channel =
      grpc::CreateChannel("unix:" + Path("config.sock"), grpc::InsecureChannelCredentials());
  const auto stub = v1::Config::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::SetConfigRequest request;
  request.set_node_name("node");
  request.mutable_config()->insert(data.begin(), data.end());
  v1::SetConfigReply reply;
  const grpc::Status status = stub->SetConfig(&context, request, &reply);
  return status.ok() ? reply.error() : "no answer: " + status.error_message();
}

void ControlTest::DuringFirstLook(
    const std::vector<std::string>& flags,
    const std::function<bool(const std::function<bool()>& in_time)>& test) {
  static constexpr seconds kHeldBack{2};
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    ASSERT_THAT(daemon_->Terminate(), IsOk());
    runtime_.Script("ListPodSandbox", {.hold = true});
    const auto begin = std::chrono::steady_clock::now();
    StartDaemon(flags);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(runtime_.WaitForHeld("ListPodSandbox", 1));
    const bool done =
        test([begin] { return std::chrono::steady_clock::now() - begin < kHeldBack; });
    runtime_.Script("ListPodSandbox", {});
    if (done) return;
  }
  ADD_FAILURE() << "no first look of " << kTries << " left the test its time";
}

std::string ControlTest::WriteFile(const std::string& name, const std::string& text) const {
  std::ofstream(Path(name)) << text;
  return Path(name);
}

}  // namespace resmgr::test
