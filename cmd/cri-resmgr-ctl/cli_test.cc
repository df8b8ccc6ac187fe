// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/cli.h"

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cmd/cri-resmgr-ctl/testing/ctl_runner.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

using resmgr::test::Ctl;
using resmgr::test::Outcome;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

void ExpectOneLineError(const Outcome& outcome, std::string_view part) {
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, StartsWith("cri-resmgr-ctl: "));
  EXPECT_THAT(outcome.err, HasSubstr(std::string(part)));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

TEST(CliTest, HelpListsEveryCommand) {
  for (const char* flag : {"-help", "--help", "-h"}) {
    const Outcome help = Ctl({flag});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.err, IsEmpty());
    for (const auto& command : AllCommands())
      EXPECT_THAT(help.out, HasSubstr("\n  " + std::string(command->name()) + " "));
  }
}

TEST(CliTest, EveryCommandExplainsItself) {
  for (const auto& command : AllCommands()) {
    const Outcome help = Ctl({std::string(command->name()), "-help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out,
                StartsWith("Usage: cri-resmgr-ctl " + std::string(command->name()) + " [FLAG...]"));
    EXPECT_THAT(help.out, HasSubstr(std::string(command->description())));
  }
}

TEST(CliTest, PrintsItsVersion) {
  EXPECT_EQ(Ctl({"-version"}).out, "cri-resmgr-ctl 1.2.3\n");
  EXPECT_EQ(Ctl({"--version"}).exit_code, 0);
}

TEST(CliTest, ADumpThatDoesNotBeginLeavesItsFileAsItIs) {
  const TempDir directory;
  const std::string file = directory.File("web.dump");
  std::ofstream(file) << "an earlier dump";
  const auto dump = [&](const char* pod) {
    return Ctl({"-socket", directory.File("none"), "dump", "-pod", pod, "-o", file});
  };
  EXPECT_EQ(dump("shop/web").exit_code, 2);
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), "an earlier dump");
  EXPECT_NO_THROW(EXPECT_EQ(dump("shop/w\xff").exit_code, 2)) << "not UTF-8";
}

// A shell waits for the names while the user holds the Tab key.
TEST(CliTest, CompletionDoesNotWaitForADaemonThatHangs) {
  const TempDir directory;
  const std::string path = directory.File("admin.sock");
  const auto never_accepts = ListeningSocket::Create(path);
  ASSERT_TRUE(never_accepts.ok()) << never_accepts.status();
  const auto begin = std::chrono::steady_clock::now();
  const Outcome names = Ctl({"complete", "pods", "-socket", path});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(names.exit_code, 0);
  EXPECT_THAT(names.out, IsEmpty());
}

TEST(CliTest, NotesAboutAFileHaveNoControlCharacters) {
  const TempDir directory;
  const std::string path = directory.File("pools.yaml");
  std::ofstream(path) << R"(policy:
  static-pools:
    pools:
      "\x1b[31mred": {exclusive: "true", odd: 1, cpuLists: []}
)";
  const Outcome converted = Ctl({"config", "convert", path, "-from", "static-pools"});
  EXPECT_THAT(converted.err, HasSubstr("odd is left out"));
  EXPECT_THAT(converted.out + converted.err, Not(HasSubstr("\x1b")));
}

TEST(CliTest, ConfigReadsStandardInput) {
  const TempDir directory;
  const std::string path = directory.File("policy.yaml");
  std::ofstream(path) << "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"
                         "spec: {reservedResources: {cpu: 1}}\n";
  for (const bool flag : {false, true}) {
    const int saved = ::dup(STDIN_FILENO);
    const int input = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::dup2(input, STDIN_FILENO), STDIN_FILENO);
    std::vector<std::string> arguments = {"config", "convert", "-from", "nri-plugins"};
    if (flag) arguments.emplace_back("-f");
    arguments.emplace_back("-");
    const Outcome converted = Ctl(arguments);
    ::dup2(saved, STDIN_FILENO);
    ::close(input);
    ::close(saved);
    EXPECT_EQ(converted.exit_code, 0) << converted.err;
    EXPECT_THAT(converted.out, HasSubstr("Active: balloons"));
  }
  ExpectOneLineError(Ctl({"config", "check", "/no/such/file"}), "cannot open /no/such/file");
}

TEST(CliTest, VersionTellsOfADaemonThatIsNotReached) {
  const Outcome version = Ctl({"version", "-socket", "/no/such/socket"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "cri-resmgr-ctl 1.2.3\ncri-resmgr     not reached\n");
  EXPECT_EQ(Ctl({"version", "-o", "json", "-socket", "/no/such/socket"}).out,
            "{\"ctl\":\"1.2.3\",\"daemon\":\"\"}\n");
}

TEST(CliTest, HelpOfACommandIsThatOfItsFlag) {
  EXPECT_EQ(Ctl({"help", "topology"}).out, Ctl({"topology", "-help"}).out);
  EXPECT_EQ(Ctl({"help"}).out, Ctl({"-help"}).out);
  ExpectOneLineError(Ctl({"help", "topolgy"}),
                     "unknown command \"topolgy\"; did you mean topology?");
}

TEST(CliTest, CompletionWithoutADaemonHasNoNames) {
  for (const char* const kind :
       {"pods", "containers", "namespaces", "pools", "policies", "log-sources"}) {
    const Outcome outcome = Ctl({"complete", kind, "-socket", "/no/such/socket"});
    EXPECT_EQ(outcome.exit_code, 0) << kind;
    EXPECT_THAT(outcome.out, IsEmpty()) << kind;
  }
  ExpectOneLineError(Ctl({"complete", "dreams"}), "no names of the kind \"dreams\"");
}

TEST(CliTest, ADaemonThatIsNotReachedHasANextStep) {
  const Outcome outcome = Ctl({"status", "-socket", "/no/such/socket"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("there is no such socket; see whether it runs: systemctl"));
}

// Answers each call of History with the same text.
class AnsweringServer {
 public:
  explicit AnsweringServer(const std::string& answer, const std::string& method = "History") {
    auto server = UnaryServer::Create(
        loop_, flushes_, socket(),
        {{"/cri_resmgr.v1.Admin/" + method,
          [answer](const std::string&, const UnaryServer::Reply& reply) { reply(answer); }}});
    EXPECT_TRUE(server.ok());
    if (server.ok()) server_ = *std::move(server);
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~AnsweringServer() {
    loop_.Post([this] { loop_.Stop(); });
    thread_.join();
  }
  AnsweringServer(const AnsweringServer&) = delete;
  AnsweringServer& operator=(const AnsweringServer&) = delete;

  std::string socket() const { return directory_.File("socket"); }

 private:
  const TempDir directory_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::unique_ptr<UnaryServer> server_;
  std::thread thread_;
};

TEST(CliTest, AHistoryWithoutMatchesIsNotOneOfNothing) {
  const AnsweringServer server(
      R"([{"time":"2026-11-29T10:00:00.000Z","event":"placed","container":"shop/web/main"}])");
  const auto history = [&server](const char* flag, const char* value) {
    return Ctl({"history", flag, value, "-socket", server.socket()}).out;
  };
  EXPECT_THAT(history("-pod", "web"), HasSubstr("placed"));
  const std::string none = "none of the decisions that are kept matches -pod and -since\n";
  EXPECT_EQ(history("-pod", "db"), none);
  EXPECT_EQ(history("-since", "2100-01-01"), none);
  const AnsweringServer idle("[]");
  EXPECT_EQ(Ctl({"history", "-socket", idle.socket()}).out, "nothing was done yet\n");
}

TEST(CliTest, AConfigurationThatCannotBeSavedIsAnError) {
  const TempDir directory;
  const std::string path = directory.File("policy.yaml");
  std::ofstream(path) << "policy: {Active: static}\n";
  const AnsweringServer full(R"({"policy":"static","notSaved":"no space left"})", "ConfigSet");
  const Outcome outcome = Ctl({"config", "set", path, "-socket", full.socket()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "in force: policy static\n");
  EXPECT_THAT(outcome.err, HasSubstr("lost at a restart: it cannot be saved: no space left"));
  const AnsweringServer kept(R"({"policy":"static"})", "ConfigSet");
  EXPECT_EQ(Ctl({"config", "set", path, "-socket", kept.socket()}).exit_code, 0);
}

TEST(CliTest, OptionsThatContradictAreRefused) {
  ExpectOneLineError(Ctl({"status", "-w", "-check"}), "-check looks once");
  ExpectOneLineError(Ctl({"topology", "-types", "-topology", "live"}), "-types and -topology");
  ExpectOneLineError(Ctl({"top", "nodes", "-n", "shop"}), "-n is for containers");
  ExpectOneLineError(Ctl({"top", "nodes", "-sort-by", "memory"}), "-sort-by is for containers");
  ExpectOneLineError(Ctl({"config", "convert", "-force", "-from", "nri-plugins", "/no/such/file"}),
                     "-force is for config set");
}

TEST(CliTest, ATableOfTheHistoryIsCutForATerminalOnly) {
  const std::string reason(300, 'x');
  const AnsweringServer server(fmt::format(
      R"([{{"time":"2026-11-29T10:00:00.000Z","event":"placed","reason":"{}"}}])", reason));
  EXPECT_THAT(Ctl({"history", "-socket", server.socket()}).out, HasSubstr(reason));
}

TEST(CliTest, AFileForADumpThatCannotBeWrittenIsToldWithTheReason) {
  const AnsweringServer server(R"({"trace":1})", "DumpPod");
  const Outcome outcome = Ctl(
      {"dump", "-pod", "shop/web", "-socket", server.socket(), "-o", "/no/such/directory/dump"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("cannot write /no/such/directory/dump: No such file or directory"));
}

TEST(CliTest, TheShellCompletesLevelsOfTheLog) {
  EXPECT_THAT(Ctl({"-help=bash"}).out,
              HasSubstr("words='debug info warn error'\n      live='log-sources'"));
  EXPECT_THAT(Ctl({"-help=zsh"}).out, HasSubstr("'1:what:(debug info warn error)'"));
}

TEST(CliTest, AHistoryFromNowhereIsRefused) {
  for (const char* const since :
       {"yesterday", "2026-11-27 03:00", "2026-11-27T03:00:00+02:00", "2026-11-27Tnoon", "2026-11",
        "2026-11-27T03:00:00.0001", "2026-13-45", "2026-02-29", "0000-00-00", "2026-11-27T24:00",
        "2026-11-27T03:60", "2026-11-27T03:00:61"}) {
    ExpectOneLineError(Ctl({"history", "-since", since}),
                       fmt::format("-since: \"{}\" is neither", since));
  }
  for (const char* const since :
       {"10m", "2026-11-27", "2026-11-27T03:00", "2026-11-27T03:00:00Z", "2026-11-27T03:00:00.123Z",
        "2028-02-29T23:59:59", "2026-11-27T1"}) {
    EXPECT_THAT(Ctl({"history", "-since", since, "-socket", "/no/such/socket"}).err,
                HasSubstr("there is no such socket"))
        << since;
  }
}

TEST(CliTest, RefusesWhatItDoesNotKnow) {
  ExpectOneLineError(Ctl({}), "no command given");
  ExpectOneLineError(Ctl({"topolgy"}), "unknown command \"topolgy\"; did you mean topology?");
  ExpectOneLineError(Ctl({"dance"}), "unknown command \"dance\"; -help lists what there is");
  ExpectOneLineError(Ctl({"help", "dance"}), "unknown command \"dance\"; -help lists what");
  ExpectOneLineError(Ctl({""}), "unknown command \"\"");
  ExpectOneLineError(Ctl({"-verbose", "topology"}), "unknown flag -verbose");
  ExpectOneLineError(Ctl({"topology", "-wide"}), "unknown flag -wide");
  ExpectOneLineError(Ctl({"topology", "extra"}), "unexpected argument \"extra\"");
  ExpectOneLineError(Ctl({"topology", "-o", "xml"}), "-o: \"xml\" is not one of table, json, yaml");
  ExpectOneLineError(Ctl({"topology", "-topology"}), "-topology: needs a value");
}

TEST(CliTest, RefusesASocketThatCannotBe) {
  const std::string too_long(150, 'x');
  ExpectOneLineError(Ctl({"-socket", too_long, "status"}), "-socket: socket path xxx");
  ExpectOneLineError(Ctl({"-socket=", "status"}), "-socket: socket path is empty");
  EXPECT_EQ(Ctl({"-socket", "/no/such/socket", "status"}).exit_code, 2);
}

TEST(CliTest, FullDiskIsAnError) {
  std::ostringstream out;
  std::ostringstream err;
  out.setstate(std::ios::badbit);
  const char* const argv[] = {"cri-resmgr-ctl", "-version"};
  EXPECT_EQ(RunCli(2, argv, "1.2.3", AllCommands(), out, err), 2);
  EXPECT_THAT(err.str(), EndsWith("the output cannot be written\n"));
}

TEST(CliTest, ExitCodesFollowTheKindOfError) {
  EXPECT_EQ(ExitCodeOf(OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(InvalidArgument("x")), 1);
  EXPECT_EQ(ExitCodeOf(NotFound("x")), 1);
  EXPECT_EQ(ExitCodeOf(Unavailable("x")), 2);
  EXPECT_EQ(ExitCodeOf(MakeStatus(StatusCode::kAborted, "x")), 1) << "of config set";
  EXPECT_EQ(ExitCodeOf(MakeStatus(kDrift, "x")), 3);
  EXPECT_EQ(ExitCodeOf(Internal("x")), 3);
}

TEST(TopologyCommandTest, ShowsTheLiveMachineAsATable) {
  const Outcome outcome = Ctl({"topology"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("\nNUMA  TYPE  MEMORY"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(TopologyCommandTest, FlagsTakeEveryForm) {
  const std::string json =
      Ctl({"topology", "-topology", "synthetic:core:2 pu:2", "-o", "json"}).out;
  EXPECT_EQ(nlohmann::json::parse(json)["cpus"].size(), 4U);
  EXPECT_EQ(Ctl({"topology", "--topology=synthetic:core:2 pu:2", "--o=json"}).out, json);
  EXPECT_EQ(Ctl({"topology", "-o=json", "--topology", "synthetic:core:2 pu:2"}).out, json);
}

TEST(TopologyCommandTest, IsYamlToo) {
  const Outcome outcome = Ctl({"topology", "-topology", "synthetic:core:2 pu:2", "-o", "yaml"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("\nnuma:\n- distances:\n"));
  EXPECT_THAT(outcome.out, StartsWith("cpus:\n- "));
}

TEST(TopologyCommandTest, ReadsAFile) {
  const std::string file = RESMGR_SOURCE_DIR "/test/data/topology/epyc-2s-ccx.xml";
  EXPECT_THAT(Ctl({"topology", "-topology", file}).out,
              StartsWith("64 CPUs online (0-63), 32 cores, 2 packages"));
}

TEST(TopologyCommandTest, ServerTypesAreListedAndTakenByName) {
  const std::string table = Ctl({"topology", "-types"}).out;
  EXPECT_THAT(table, HasSubstr("epyc-9654-2s-nps4  384   2         8     24  the same with"));
  EXPECT_THAT(Ctl({"topology", "-topology", "epyc-9654-2s-nps4"}).out,
              HasSubstr("384 CPUs online (0-383), 192 cores, 2 packages"));
  EXPECT_THAT(Ctl({"topology", "-types", "-o", "json"}).out, HasSubstr("\"name\": \"graviton3\""));
}

TEST(TopologyCommandTest, ABadMachineIsOneClearLine) {
  ExpectOneLineError(Ctl({"topology", "-topology", "/no/such/file"}), "no file '/no/such/file'");
  ExpectOneLineError(Ctl({"topology", "-topology", "synthetic:bogus"}), "'bogus'");
  ExpectOneLineError(Ctl({"topology", "-topology", ""}), "empty description");
}

}  // namespace
}  // namespace resmgr
