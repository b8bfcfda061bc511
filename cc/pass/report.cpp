// SPDX-License-Identifier: MIT
//
// The report: one line for each fact, with tabs between its parts. The driver makes a table of it.
// Compilers that run side by side append to one file, so each line is one write.
#include "cc/pass/names.h"
#include "cc/pass/steps.h"
#include "cc/pass/versions.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

namespace janus
{

static void append(LLVMContext &context, const Options &options, const std::string &line)
{
    int file = open(options.report.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line.data(), line.size()) != (ssize_t)line.size())
        context.emitError("cannot write the report, " + options.report + ": " + strerror(errno));
    if (file >= 0) close(file);
}

// file:line of a function or of an instruction; line 0 without -g.
static std::string placeOf(const Function *function, const Instruction *instruction)
{
    std::string file = function ? function->getParent()->getSourceFileName() : "?";
    unsigned    line = 0;
    if (const DISubprogram *program = function ? function->getSubprogram() : nullptr) {
        file = program->getFilename().str();
        line = program->getLine();
    }
    if (instruction && instruction->getDebugLoc()) line = instruction->getDebugLoc().getLine();
    return file + ":" + std::to_string(line);
}

static const Instruction *reportedUse(const GlobalValue &value, const Function *&function)
{
    for (const User *user : value.users())
        if (auto *instruction = dyn_cast<Instruction>(user)) {
            function = instruction->getFunction();
            return instruction;
        }
    return nullptr;
}

void reportFunction(const Function &function, const Options &options, const Facts &facts)
{
    if (options.report.empty()) return;
    std::string marks = function.getFnAttribute(attrMarks).getValueAsString().str();
    append(function.getContext(), options,
           "function\t" + function.getName().str() + "\t" + placeOf(&function, nullptr) +
               "\tmarks " + (marks.empty() ? "0" : marks) + "\tfolded " +
               std::to_string(facts.folded) + "\tstripped " + std::to_string(facts.stripped) +
               "\tregister " + std::to_string(facts.inRegister) + "\tquick " +
               std::to_string(facts.quick) + "\n");
}

static void reportAssembly(Module &module, const Options &options)
{
    for (Function &function : module)
        for (Instruction &instruction : instructions(function)) {
            auto *call = dyn_cast<CallBase>(&instruction);
            if (!call || !call->isInlineAsm()) continue;
            if (cast<InlineAsm>(call->getCalledOperand())->getAsmString().empty()) continue;
            append(module.getContext(), options,
                   "asm\t" + function.getName().str() + "\t" + placeOf(&function, call) + "\n");
        }
}

void reportModule(Module &module, ModuleAnalysisManager &analyses, const Options &options)
{
    if (options.report.empty()) return;
    auto &managers = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    for (Function &external : module) {
        if (!external.isDeclaration() || external.isIntrinsic() || external.use_empty()) continue;
        if (isRuntimeName(external.getName())) continue;
        LibFunc known;
        bool    library = managers.getResult<TargetLibraryAnalysis>(external).getLibFunc(
            external.getName(), known);
        const Function    *function = nullptr;
        const Instruction *use = reportedUse(external, function);
        bool               wrapped = options.wrap && isWrapped(external.getName());
        append(module.getContext(), options,
               "external\t" + external.getName().str() + "\t" +
                   (function ? placeOf(function, use) : module.getSourceFileName() + ":0") + "\t" +
                   (wrapped   ? "wrapped"
                    : library ? "known"
                              : "unknown") +
                   "\n");
    }
    for (GlobalVariable &variable : module.globals()) {
        if (!variable.isThreadLocal() || isRuntimeName(variable.getName())) continue;
        const Function    *function = nullptr;
        const Instruction *use = reportedUse(variable, function);
        append(module.getContext(), options,
               "thread-local\t" + variable.getName().str() + "\t" +
                   (function ? placeOf(function, use) : module.getSourceFileName() + ":0") + "\n");
    }
    reportAssembly(module, options);
}

} // namespace janus
