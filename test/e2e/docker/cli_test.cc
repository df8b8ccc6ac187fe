// SPDX-License-Identifier: Apache-2.0
// The `docker` command in front of cri-resmgr prints what it prints in front of dockerd itself.
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/docker/cli_transcript.h"
#include "test/e2e/docker/docker_node.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using Arguments = CliTranscript::Arguments;
using ::testing::HasSubstr;

const std::string kImage(Dockerd::kBusyboxImage);

// `docker run` of a shell's script, without a network.
Arguments Shell(Arguments arguments, const std::string& script) {
  Arguments result = {"run", "--network", "none"};
  result.insert(result.end(), arguments.begin(), arguments.end());
  result.insert(result.end(), {kImage, "-c", script});
  return result;
}

// One that runs until it is removed.
void Sleeper(CliTranscript& docker, const std::string& name) {
  docker.Run(
      Shell({"-d", "--init=false", "--name", name}, "trap exit TERM; while :; do sleep 0.1; done"));
}

void Runs(CliTranscript& docker) {
  const auto both = docker.Run(Shell({"--rm"}, "echo out; echo err >&2; exit 3"));
  EXPECT_EQ(both.exit_code, 3);
  EXPECT_EQ(both.output, "out\n");
  EXPECT_EQ(both.errors, "err\n");
  EXPECT_EQ(docker.Run(Shell({"--rm"}, "no-such-program")).exit_code, 127);
  EXPECT_EQ(
      docker.Run({"run", "--rm", "--network", "none", "--entrypoint", "/no", kImage}).exit_code,
      127);
  EXPECT_EQ(docker.Run(Shell({"--rm", "--no-such-flag"}, "true")).exit_code, 125);
  EXPECT_EQ(docker
                .Run(Shell({"--rm", "--cpuset-cpus", "0", "--cpu-shares", "77", "-e", "A=b"},
                           "grep Cpus_allowed_list /proc/self/status; echo $A"))
                .output,
            "Cpus_allowed_list:\t0\nb\n");
}

// The end of the input is a half-closed connection; later output still arrives.
void RunsWithInput(CliTranscript& docker) {
  EXPECT_EQ(docker.Run(Shell({"-i", "--rm"}, "cat; sleep 0.3; echo later"), "some\ninput").output,
            "some\ninputlater\n");
  const std::string much(8 << 20, 'x');
  const auto counted = docker.Run(Shell({"-i", "--rm"}, "wc -c"), much);
  EXPECT_EQ(counted.output, fmt::format("{}\n", much.size()));
  const auto echoed =
      docker.Run(Shell({"-i", "--rm"}, "cat | sha256sum; cat /etc/passwd >&2"), much);
  EXPECT_THAT(echoed.errors, HasSubstr("root"));
  // The reader decides how much of a longer input it reads.
  EXPECT_EQ(docker.Run(Shell({"-i", "--rm"}, "head -c 5"), "a short text").output, "a sho");
}

// Waits until `docker` has sent the size of the user's terminal, which it does beside the start. A
// shell that gets the size while it reads a line prints that line again.
const std::string kAwaitSize =
    R"sh(until [ "$(stty size 2>/dev/null)" = "33 101" ]; do sleep 0.1; done; )sh";

void RunsOnATerminal(CliTranscript& docker) {
  const Arguments shell = {"run",        "-it", "--rm", "--network", "none",
                           "--hostname", "box", kImage, "-c",        kAwaitSize + "exec sh"};
  const auto process = docker.Begin(shell, /*terminal=*/true);
  ASSERT_NE(process, nullptr);
  // The shell asks where the cursor is if no key waits, as the last thing before it reads.
  ASSERT_THAT(process->Expect("# \x1B[6n"), IsOk());
  ASSERT_THAT(process->Type("stty size; exit 5\r"), IsOk());
  const auto result = docker.Finish(shell, *process);
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.output, HasSubstr("33 101\r\n"));
}

void Detaches(CliTranscript& docker) {
  const Arguments run = {"run",  "-it",       "--name",
                         "left", "--network", "none",
                         kImage, "-c",        "echo ready; read x; echo got $x; sleep 0.2; exit 9"};
  const auto process = docker.Begin(run, /*terminal=*/true);
  ASSERT_NE(process, nullptr);
  ASSERT_THAT(process->Expect("ready"), IsOk());
  ASSERT_THAT(process->Type("\x10\x11"), IsOk());
  EXPECT_EQ(docker.Finish(run, *process).exit_code, 0);
  EXPECT_THAT(docker.Run({"ps", "--format", "{{.Names}} {{.Status}}"}).output,
              HasSubstr("left Up"));
  const Arguments attach = {"attach", "left"};
  const auto again = docker.Begin(attach, /*terminal=*/true);
  ASSERT_NE(again, nullptr);
  ASSERT_THAT(again->AwaitRawTerminal(), IsOk());
  ASSERT_THAT(again->Type("word\r"), IsOk());
  EXPECT_THAT(again->Expect("got word"), IsOk());
  EXPECT_EQ(docker.Finish(attach, *again).exit_code, 9);
  docker.Run({"rm", "left"});
}

void Executes(CliTranscript& docker) {
  Sleeper(docker, "host");
  const auto both = docker.Run({"exec", "host", "sh", "-c", "echo out; echo err >&2; exit 4"});
  EXPECT_EQ(both.exit_code, 4);
  EXPECT_EQ(both.output, "out\n");
  EXPECT_EQ(both.errors, "err\n");
  EXPECT_EQ(docker.Run({"exec", "-i", "host", "wc", "-c"}, "twelve bytes").output, "12\n");
  EXPECT_EQ(docker.Run({"exec", "host", "no-such-program"}).exit_code, 126);
  EXPECT_EQ(docker.Run({"exec", "-d", "host", "touch", "/tmp/made"}).exit_code, 0);
  EXPECT_EQ(
      docker.Run({"exec", "-e", "A=b", "-w", "/tmp", "host", "sh", "-c", "echo $A; pwd"}).output,
      "b\n/tmp\n");
  EXPECT_EQ(docker.Run({"exec", "absent", "true"}).exit_code, 1);
  const Arguments shell = {"exec", "-it", "host",
                           "sh",   "-c",  kAwaitSize + "stty size; read x; echo got $x; exit 6"};
  const auto process = docker.Begin(shell, /*terminal=*/true);
  ASSERT_NE(process, nullptr);
  ASSERT_THAT(process->Expect("33 101"), IsOk());
  ASSERT_THAT(process->Type("word\r"), IsOk());
  EXPECT_EQ(docker.Finish(shell, *process).exit_code, 6);
  docker.Run({"rm", "-f", "host"});
}

void Attaches(CliTranscript& docker) {
  docker.Run({"create", "-i", "--name", "reader", "--network", "none", kImage, "-c",
              "cat; echo end >&2; exit 8"});
  const auto started = docker.Run({"start", "-ai", "reader"}, "by attach\n");
  EXPECT_EQ(started.exit_code, 8);
  EXPECT_EQ(started.output, "by attach\n");
  docker.Run({"rm", "reader"});
  docker.Run(Shell({"-di", "--name", "asker"}, "read x; echo got $x; sleep 0.2; exit 2"));
  const Arguments attach = {"attach", "asker"};
  const auto attached = docker.Begin(attach);
  ASSERT_NE(attached, nullptr);
  ASSERT_THAT(attached->Type("it\n"), IsOk());
  EXPECT_THAT(attached->Expect("got it\n"), IsOk());
  attached->EndInput();
  EXPECT_EQ(docker.Finish(attach, *attached).exit_code, 2);
  EXPECT_EQ(docker.Run({"attach", "asker"}).exit_code, 1);
  docker.Run({"rm", "asker"});
}

void Copies(CliTranscript& docker) {
  const std::filesystem::path file = docker.directory() / "data";
  {
    std::ofstream out(file);
    for (int i = 0; i < 300'000; ++i)
      out << i << '\n';
  }
  Sleeper(docker, "box");
  EXPECT_EQ(docker.Run({"cp", "data", "box:/tmp/there"}).exit_code, 0);
  docker.Run({"exec", "box", "sha256sum", "/tmp/there"});
  EXPECT_EQ(docker.Run({"cp", "box:/tmp/there", "back"}).exit_code, 0);
  EXPECT_EQ(TextOf(docker.directory() / "back"), TextOf(file));
  // Copies as a stream, from a path with characters that must be percent-encoded.
  docker.Run({"exec", "box", "sh", "-c", "mkdir '/tmp/a b+c%2F'; echo in > '/tmp/a b+c%2F/ü'"});
  EXPECT_GT(docker.Run({"cp", "box:/tmp/a b+c%2F/ü", "odd"}).exit_code, -1);
  EXPECT_EQ(TextOf(docker.directory() / "odd"), "in\n");
  EXPECT_EQ(docker.Run({"cp", "box:/absent", "-"}).exit_code, 1);
  docker.Run({"rm", "-f", "box"});
  std::filesystem::remove(docker.directory() / "back");
  std::filesystem::remove(docker.directory() / "odd");
}

void Logs(CliTranscript& docker) {
  docker.Run(Shell({"-d", "--name", "talker"},
                   "for i in 1 2 3 4 5; do echo line $i; echo err $i >&2; sleep 0.1; done"));
  const auto followed = docker.Run({"logs", "-f", "talker"});
  EXPECT_THAT(followed.output, HasSubstr("line 5\n"));
  EXPECT_THAT(followed.errors, HasSubstr("err 5\n"));
  docker.Run({"wait", "talker"});
  docker.Run({"logs", "talker"});
  docker.Run({"logs", "-t", "--tail", "2", "talker"});
  EXPECT_EQ(docker.Run({"logs", "absent"}).exit_code, 1);
  docker.Run({"rm", "talker"});
}

void Builds(CliTranscript& docker) {
  const std::filesystem::path context = docker.directory() / "context";
  std::filesystem::create_directory(context);
  std::ofstream(context / "file") << std::string(3 << 20, 'c');
  std::ofstream(context / "Dockerfile") << "FROM scratch\nCOPY file /\nLABEL a=b\n";
  const auto built = docker.Run({"build", "--no-cache", "-t", "local/built", "context"});
  EXPECT_EQ(built.exit_code, 0);
  EXPECT_THAT(built.output, HasSubstr("Successfully tagged local/built:latest"));
  EXPECT_THAT(docker.lines().back(), HasSubstr("PROGRESS")) << "told by a clock";
  std::ofstream(context / "Dockerfile") << "FROM " << kImage << "\nRUN echo running; exit 3\n";
  EXPECT_NE(docker.Run({"build", "--no-cache", "--network", "none", "context"}).exit_code, 0);
  docker.Run({"image", "inspect", "local/built", "--format", "{{.Config.Labels}} {{.Size}}"});
  docker.Run({"history", "local/built"});
  docker.Run({"rmi", "local/built"});
}

void SavesAndLoads(CliTranscript& docker) {
  const auto saved = docker.Run({"save", kImage, "-o", "saved.tar"});
  EXPECT_EQ(saved.exit_code, 0);
  const std::string archive = TextOf(docker.directory() / "saved.tar");
  EXPECT_GT(archive.size(), 1'000'000U);
  docker.Run({"tag", kImage, "local/other:2"});
  docker.Run({"images", "local/busybox", "--format", "{{.Tag}} {{.ID}} {{.Size}}"});
  docker.Run({"rmi", "local/other:2"});
  EXPECT_THAT(docker.Run({"load", "-i", "saved.tar"}).output, HasSubstr("Loaded image"));
  EXPECT_THAT(docker.Run({"load"}, archive).output, HasSubstr("Loaded image"));
  EXPECT_NE(docker.Run({"load"}, "no archive").exit_code, 0);
}

void Stats(CliTranscript& docker) {
  Sleeper(docker, "busy");
  EXPECT_THAT(docker.Run({"stats", "--no-stream", "--format", "{{.Name}} {{.BlockIO}}"}).output,
              HasSubstr("busy"));
  EXPECT_EQ(docker.Run({"stats", "--no-stream", "absent"}).exit_code, 1);
  docker.Run({"rm", "-f", "busy"});
}

void Events(CliTranscript& docker) {
  const auto now = [] {
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    return fmt::format("{:.6f}", std::chrono::duration<double>(time).count());
  };
  const std::string begin = now();
  const Arguments live = {"events", "--since", begin, "--filter", "container=seen"};
  const auto listener = docker.Begin(live);
  ASSERT_NE(listener, nullptr);
  docker.Run(Shell({"--rm", "--name", "seen"}, "exit 7"));
  // Events arrive as they happen, while the stream goes on.
  EXPECT_THAT(listener->Expect(" container destroy "), IsOk());
  listener->Signal(SIGINT);
  docker.Finish(live, *listener);
  const auto past =
      docker.Run({"events", "--since", begin, "--until", now(), "--filter", "container=seen"});
  EXPECT_EQ(past.exit_code, 0);
  EXPECT_THAT(past.output, HasSubstr("exitCode=7"));
}

void Changes(CliTranscript& docker) {
  Sleeper(docker, "subject");
  EXPECT_EQ(docker
                .Run({"update", "--cpu-shares", "512", "--memory", "64m", "--memory-swap", "64m",
                      "subject"})
                .exit_code,
            0);
  EXPECT_EQ(docker.Run({"inspect", "subject", "--format", "{{.HostConfig.CpuShares}}"}).output,
            "512\n");
  EXPECT_EQ(docker.Run({"update", "--cpuset-cpus", "4095", "subject"}).exit_code, 1);
  docker.Run({"rename", "subject", "renamed"});
  EXPECT_EQ(docker.Run({"rename", "absent", "other"}).exit_code, 1);
  docker.Run({"pause", "renamed"});
  docker.Run({"ps", "--filter", "status=paused", "--format", "{{.Names}} {{.Status}}"});
  docker.Run({"unpause", "renamed"});
  docker.Run({"restart", "-t", "5", "renamed"});
  docker.Run({"inspect", "renamed"});
  docker.Run({"stop", "-t", "5", "renamed"});
  EXPECT_EQ(docker.Run({"wait", "renamed"}).exit_code, 0);
  docker.Run({"start", "renamed"});
  docker.Run({"commit", "renamed", "local/committed"});
  docker.Run({"rmi", "local/committed"});
  EXPECT_EQ(docker.Run({"rm", "renamed"}).exit_code, 1);
  docker.Run({"rm", "-f", "renamed"});
}

void Signals(CliTranscript& docker) {
  docker.Run(Shell({"-d", "--name", "trapping"},
                   "trap 'echo usr1; exit 7' USR1; echo ready; while :; do sleep 0.05; done"));
  const Arguments logs = {"logs", "-f", "trapping"};
  const auto follower = docker.Begin(logs);
  ASSERT_NE(follower, nullptr);
  ASSERT_THAT(follower->Expect("ready"), IsOk());
  const Arguments wait = {"wait", "trapping"};
  const auto waiter = docker.Begin(wait);
  ASSERT_NE(waiter, nullptr);
  docker.Run({"kill", "-s", "USR1", "trapping"});
  EXPECT_EQ(docker.Finish(wait, *waiter).output, "7\n");
  EXPECT_THAT(docker.Finish(logs, *follower).output, HasSubstr("usr1\n"));
  EXPECT_EQ(docker.Run({"kill", "trapping"}).exit_code, 1);
  EXPECT_EQ(docker.Run({"kill", "-s", "NONE", "trapping"}).exit_code, 1);
  docker.Run({"rm", "trapping"});
}

void Asks(CliTranscript& docker) {
  EXPECT_EQ(docker.Run({"pull", "127.0.0.1:1/none:1"}).exit_code, 1);
  docker.Run({"version"});
  docker.Run({"info"});
  Sleeper(docker, "one");
  docker.Run(Shell({"--name", "two", "--label", "a=b"}, "exit 1"));
  docker.Run({"ps", "-a", "--no-trunc", "--filter", "label=a=b"});
  docker.Run({"ps", "-a", "--filter", "exited=1", "--format", "{{json .Names}}"});
  docker.Run({"ps", "-q", "--filter", "name=^/one$"});
  EXPECT_EQ(docker.Run({"ps", "--filter", "no=such"}).exit_code, 1);
  docker.Run({"inspect", "one", "two"});
  EXPECT_EQ(docker.Run({"inspect", "absent"}).exit_code, 1);
  docker.Run({"network", "ls", "--format", "{{.Name}} {{.Driver}}"});
  docker.Run({"volume", "create", "vol"});
  docker.Run({"volume", "rm", "vol"});
  docker.Run({"system", "df", "--format", "{{.Type}} {{.TotalCount}}"});
  docker.Run({"swarm", "join", "--token", "none", "127.0.0.1:1"});
  docker.Run({"login", "-u", "user", "-p", "secret", "127.0.0.1:1"});
  docker.Run({"rm", "-f", "one", "two"});
}

struct Scenario {
  const char* name;
  void (*talk)(CliTranscript&);
};

class CliTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(CliTest, IsAsInFrontOfTheEngine) {
  auto node = Must(DockerNode::Start({}));
  const std::filesystem::path directory = node->directory() / "cli";
  std::filesystem::create_directory(directory);
  CliTranscript direct(node->dockerd().socket(), directory);
  GetParam().talk(direct);
  ASSERT_FALSE(HasFailure()) << "in front of dockerd itself";
  CliTranscript through(node->socket(), directory);
  GetParam().talk(through);
  EXPECT_EQ(through.lines(), direct.lines());
  EXPECT_THAT(node->daemon().Log(), ::testing::Not(HasSubstr("not understood")));
}

std::string NameOfScenario(const ::testing::TestParamInfo<Scenario>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Dockerd, CliTest,
                         ::testing::Values(Scenario{"Runs", Runs}, Scenario{"Executes", Executes},
                                           Scenario{"Logs", Logs}, Scenario{"Signals", Signals}),
                         NameOfScenario);
INSTANTIATE_TEST_SUITE_P(Long, CliTest,
                         ::testing::Values(Scenario{"RunsWithInput", RunsWithInput},
                                           Scenario{"RunsOnATerminal", RunsOnATerminal},
                                           Scenario{"Detaches", Detaches},
                                           Scenario{"Attaches", Attaches},
                                           Scenario{"Copies", Copies}, Scenario{"Builds", Builds},
                                           Scenario{"SavesAndLoads", SavesAndLoads},
                                           Scenario{"Stats", Stats}, Scenario{"Events", Events},
                                           Scenario{"Changes", Changes}, Scenario{"Asks", Asks}),
                         NameOfScenario);

}  // namespace
}  // namespace resmgr::test
