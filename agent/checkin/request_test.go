package checkin

import "testing"

func TestFailingAndWorking(t *testing.T) {
	left := []QuarantinedItem{{Kind: KindHTTP, Name: "app"}}
	for _, test := range []struct {
		report           ServiceReport
		failing, working bool
	}{
		{ServiceReport{}, false, false},
		{ServiceReport{LastApply: ApplyUnknown}, false, false},
		{ServiceReport{LastApply: ApplySuccess}, false, true}, // an older agent
		{ServiceReport{LastApply: ApplyFailure}, true, false},
		{ServiceReport{LastApply: ApplySuccess, Outcome: OutcomeApplied}, false, true},
		{ServiceReport{LastApply: ApplyUnknown, Outcome: OutcomeSkipped}, false, true},
		{ServiceReport{LastApply: ApplyFailure, Outcome: OutcomeRejected}, true, false},
		{ServiceReport{LastApply: ApplyFailure, Outcome: OutcomeStuck}, true, false},
		{ServiceReport{LastApply: ApplyFailure, Outcome: OutcomeApplied, Quarantined: left}, false, true},
		{ServiceReport{LastApply: ApplyFailure, Outcome: OutcomeRejected, Quarantined: left}, true, false},
		{ServiceReport{LastApply: ApplyFailure, Outcome: OutcomeHeld}, true, false},
		{ServiceReport{LastApply: ApplyFailure, Outcome: OutcomeHeld, Quarantined: left}, false, true},
		{ServiceReport{LastApply: ApplySuccess, Outcome: OutcomeHeld}, false, true},
		{ServiceReport{LastApply: ApplyFailure, Outcome: "of the future"}, true, false},
	} {
		if failing, working := test.report.Failing(), test.report.Working(); failing != test.failing || working != test.working {
			t.Errorf("%+v: failing %v, working %v", test.report, failing, working)
		}
	}
}
