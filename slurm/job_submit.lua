--[[ SPDX-License-Identifier: MIT OR Apache-2.0

Leaves the choice of batch jobs that start together to `symbiont slurm`.

A batch job of the partitions or QOS below is not eligible before MOST_WAIT seconds have passed; `symbiont
slurm` lets it start earlier, next to the jobs that suit it. Where no releaser runs, each job starts once
the time is over, as Slurm decides: so the wait is bounded by Slurm itself.

Left alone: interactive jobs, job arrays, jobs of several nodes or parts, held jobs, jobs that ask for nodes,
whole nodes, licences or a reservation, jobs of several partitions, and jobs with a --begin of their own. A
--deadline is not seen here: with one before MOST_WAIT, a user gives --begin=now, too.

To install: copy to the folder of slurm.conf, set the lists, and set JobSubmitPlugins=lua.
]]

local PARTITIONS = { symbiont = true }
local QOS = { symbiont = true }
local MOST_WAIT = 3600
-- `symbiont slurm` releases jobs with this word, and the end of that time, in their AdminComment.
local MARK = "symbiont:waits"

local function is_set(number)
    return number ~= nil and number ~= slurm.NO_VAL and number ~= 0
end

-- 16 and 32 bits without a value.
local function is_given(number)
    return number ~= nil and number ~= slurm.NO_VAL16 and number ~= slurm.NO_VAL
end

-- Has it several nodes or parts, or a need for which Slurm alone chooses the node?
local function is_special(job)
    if is_given(job.het_job_offset) or is_given(job.shared) then
        return true
    end
    if (job.reservation or "") ~= "" or (job.licenses or "") ~= "" then
        return true
    end
    if string.find(job.partition or "", ",", 1, true) then
        return true
    end
    if is_set(job.min_nodes) and job.min_nodes > 1 then
        return true
    end
    local each = job.ntasks_per_node
    return is_given(each) and each > 0 and is_set(job.num_tasks) and job.num_tasks > each
end

local function is_ours(job, parts)
    if QOS[job.qos or ""] then
        return true
    end
    local names = job.partition
    if names == nil then
        for name, part in pairs(parts) do
            if part.flag_default == 1 then
                names = name
            end
        end
    end
    return PARTITIONS[names or ""] == true
end

function slurm_job_submit(job, parts, uid)
    if not is_ours(job, parts) or job.script == nil or job.array_inx ~= nil then
        return slurm.SUCCESS
    end
    if is_set(job.begin_time) or job.priority == 0 or job.req_nodes ~= nil then
        return slurm.SUCCESS
    end
    if is_special(job) then
        return slurm.SUCCESS
    end
    job.begin_time = os.time() + MOST_WAIT
    -- One that gets another start time later waits for that.
    job.admin_comment = string.format("%s=%d", MARK, job.begin_time)
    return slurm.SUCCESS
end

-- A job that is moved to where Symbiont chooses nothing waits no longer.
function slurm_job_modify(job, record, parts, uid)
    local is_marked = string.find(record.admin_comment or "", MARK, 1, true)
    if job.partition ~= nil and is_marked and not is_ours(job, parts) then
        job.begin_time = os.time()
    end
    return slurm.SUCCESS
end

return slurm.SUCCESS
