// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/command_document.h"

#include <array>
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cmdline/command_line.h"
#include "pkg/cmdline/shell_completion.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

CommandDocument Sample() {
  CommandDocument document = {.program = "tool",
                              .summary =
                                  "Shows a machine, and\nmore. Second sentence.\n\nA paragraph:\n\n"
                                  "  tool -flag 'x'\n.leading dot",
                              .arguments_usage = "COMMAND",
                              .sections = {{"Exit status", "0 success"}}};
  document.flags = {
      {.name = "config", .value_name = "FILE", .help = "Where [it] is: here.", .group = "Files"},
      {.name = "dir", .value_name = "DIR", .help = "Where to.", .group = "Files"},
      {.name = "level", .value_name = "info|debug", .help = "How much.", .default_text = "info"},
      {.name = "spec", .value_name = "SPEC", .help = "What it's of.", .repeatable = true},
      {.name = "version", .help = "Print it."}};
  document.commands = {
      {.program = "tool show", .summary = "Shows it.", .short_summary = "Show it."},
      {.program = "tool config",
       .summary = "Shows or sets.",
       .arguments_usage = "show|set FILE",
       .short_summary = "Look: set."}};
  document.commands[0].flags = {{.name = "o", .value_name = "table|json", .help = "The form."},
                                {.name = "level", .value_name = "L", .help = "Said before."}};
  document.commands[1].flags = {{.name = "force", .help = "Do it."}};
  return document;
}

// The words that bash offers for the last, partial word of a command line.
std::vector<std::string> Completed(const std::string& words,
                                   const CommandDocument& document = Sample(),
                                   const std::string& before = "") {
  const std::string file = ::testing::TempDir() + "/completion.bash";
  std::ofstream(file) << before << BashCompletion(document) << "COMP_WORDS=(" << words
                      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                      << "_tool\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  FILE* pipe = popen(("cd / && bash " + file).c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr)
    output += buffer.data();
  EXPECT_EQ(pclose(pipe), 0);
  std::vector<std::string> lines;
  for (size_t from = 0; from < output.size();) {
    const size_t end = output.find('\n', from);
    if (end != from) lines.push_back(output.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

TEST(CommandDocumentTest, TextListsCommandsFlagsAndSections) {
  const std::string text = Render(Sample(), HelpFormat::kText);
  EXPECT_THAT(text, StartsWith("Usage: tool [FLAG...] COMMAND\n\nShows a machine, and\n"));
  EXPECT_THAT(text,
              HasSubstr("\nCommands:\n  show           Show it.\n  config         Look: set.\n"));
  EXPECT_THAT(text, HasSubstr("\n  -level info|debug\n        How much.\n        Default: info\n"));
  EXPECT_THAT(text, HasSubstr("\nExit status:\n0 success\n"));
}

TEST(CommandDocumentTest, ManPageEscapesWhatTroffWouldTake) {
  const std::string page = Render(Sample(), HelpFormat::kMan);
  EXPECT_THAT(page, HasSubstr(".TH \"TOOL\" 8 "));
  EXPECT_THAT(page, HasSubstr(".SH NAME\ntool \\- Shows a machine, and more\n"));
  EXPECT_THAT(page, HasSubstr(".RS 2\n.nf\ntool \\-flag 'x'\n.fi\n.RE\n\\&.leading dot\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-config\\fR \\fIFILE\\fR\nWhere [it] is: here.\n"));
  EXPECT_THAT(page, HasSubstr(".SS \"config show|set FILE\"\n"));
  EXPECT_THAT(page, HasSubstr(".SH \"EXIT STATUS\"\n0 success\n"));
  // A flag that all commands have is described once.
  EXPECT_THAT(page, Not(HasSubstr("Said before")));
}

TEST(CommandDocumentTest, BashCompletesCommandsFlagsAndValues) {
  EXPECT_THAT(Completed("tool ''"), ElementsAre("show", "config"));
  EXPECT_THAT(Completed("tool -le"), ElementsAre("-level"));
  EXPECT_THAT(Completed("tool -level d"), ElementsAre("debug"));
  EXPECT_THAT(Completed("tool --level = ''"), UnorderedElementsAre("info", "debug"));
  EXPECT_THAT(Completed("tool -level ="), UnorderedElementsAre("info", "debug"));
  EXPECT_THAT(Completed("tool -spec ''"), IsEmpty());
  EXPECT_THAT(Completed("tool -config us"), ElementsAre("usr"));
  EXPECT_THAT(Completed("tool -dir us"), ElementsAre("usr"));
  EXPECT_THAT(Completed("tool -level info show -"), ElementsAre("-o", "-level", "-help"));
  EXPECT_THAT(Completed("tool show -o j"), ElementsAre("json"));
  EXPECT_THAT(Completed("tool config s"), ElementsAre("show", "set"));
  EXPECT_THAT(Completed("tool --le"), ElementsAre("--level"));
  EXPECT_THAT(Completed("tool show --"), ElementsAre("--o", "--level", "--help"));
}

// The word is one of several and stands before the file, or may be left out.
TEST(CommandDocumentTest, BashCompletesWhatFollowsAWord) {
  EXPECT_THAT(Completed("tool config set us"), ElementsAre("usr"));
  EXPECT_THAT(Completed("tool config -force set us"), ElementsAre("usr"));
  EXPECT_THAT(Completed("tool config set -"), ElementsAre("-force", "-help"));
  CommandDocument document = Sample();
  document.commands[0].arguments_usage = "[all|some]";
  EXPECT_THAT(Completed("tool show ''", document), ElementsAre("all", "some"));
  document.commands[0].arguments_usage = "[COMMAND]";
  EXPECT_THAT(Completed("tool show ''", document), ElementsAre("show", "config"));
  EXPECT_THAT(Completed("tool show c", document), ElementsAre("config"));
  EXPECT_THAT(ZshCompletion(document), HasSubstr("'1:what:(show config)'"));
}

// A program that prints names itself is asked for them.
TEST(CommandDocumentTest, NamesOfTheRunningDaemonAreCompleted) {
  CommandDocument document = {.program = "tool"};
  document.commands = {{.program = "tool look", .arguments_usage = "[NS/]POD[/CONTAINER]|ID"},
                       {.program = "tool complete", .arguments_usage = "pods|containers"}};
  document.commands[0].flags = {{.name = "n", .value_name = "NAMESPACE", .help = "Of it."},
                                {.name = "policy", .value_name = "NAME", .help = "By it."}};
  const std::string bash = BashCompletion(document);
  EXPECT_THAT(bash, HasSubstr("live='containers'\n"));
  EXPECT_THAT(bash, HasSubstr("-n) value=\"live namespaces\" ;;"));
  EXPECT_THAT(bash, HasSubstr("-policy) value=\"live policies\" ;;"));
  // The tool prints its arguments.
  const std::string tool = "tool() { printf '%s\\n' \"${@//\\//.}\"; }\n";
  EXPECT_THAT(Completed("tool look ''", document, tool), ElementsAre("complete", "containers"));
  const auto with_socket = ElementsAre("complete", "containers", "-socket", ".run.a");
  EXPECT_THAT(Completed("tool -socket /run/a look ''", document, tool), with_socket);
  EXPECT_THAT(Completed("tool look --socket = /run/a ''", document, tool), with_socket);
  EXPECT_THAT(Completed("tool look -n n -socket /run/a p", document, tool), IsEmpty());
  const std::string zsh = ZshCompletion(document);
  EXPECT_THAT(zsh,
              HasSubstr("'*:name:{compadd -- ${(f)\"$(tool complete containers $socket "
                        "${opt_args[-socket]:+-socket} ${opt_args[-socket]} 2>/dev/null)\"}}'"));
  EXPECT_THAT(zsh, HasSubstr("tool complete namespaces"));
  EXPECT_THAT(BashCompletion(Sample()), Not(HasSubstr("live*)")));
}

TEST(CommandDocumentTest, ZshGetsDescriptionsInItsQuotes) {
  const std::string script = Render(Sample(), HelpFormat::kZsh);
  EXPECT_THAT(script, StartsWith("#compdef tool\n"));
  EXPECT_THAT(script, HasSubstr("'-config=[Where \\[it\\] is\\: here]:FILE:_files'"));
  EXPECT_THAT(script, HasSubstr("'-level=[How much]:info|debug:(info debug)'"));
  EXPECT_THAT(script, HasSubstr("'*-spec=[What it'\\''s of]:SPEC:'"));
  EXPECT_THAT(script, HasSubstr("'1:command:((show\\:\"Show it\" config\\:\"Look\\: set\"))'"));
  EXPECT_THAT(script, HasSubstr("'1:what:(show set)'"));
}

TEST(CommandDocumentTest, HelpTakesAFormat) {
  bool check = false;
  for (const char* format : {"man", "bash", "zsh"}) {
    CommandLine line("tool", "Does it.");
    line.Flag("check", "Check.", &check);
    const std::string flag = std::string("-help=") + format;
    const std::array<const char*, 2> arguments = {"tool", flag.c_str()};
    ASSERT_TRUE(line.Parse(2, arguments.data()).ok());
    EXPECT_TRUE(line.help_requested());
    EXPECT_THAT(line.Help(), HasSubstr(std::string("Made by `tool -help=") + format + "`"));
  }
  CommandLine line("tool", "");
  const std::array<const char*, 2> arguments = {"tool", "-help=html"};
  EXPECT_EQ(Message(line.Parse(2, arguments.data())),
            "-help: \"html\" is not one of text, man, bash, zsh");
}

}  // namespace
}  // namespace resmgr
