import { changeContract } from '../change.contract.ts';
import { quotaContract } from '../quota.contract.ts';
import { shareContract } from '../share.contract.ts';
import { storageContract } from '../storage.contract.ts';
import { sharedScene } from '../support/scene.ts';
import { userContract } from '../user.contract.ts';

const scene = sharedScene('PostgreSQL');
storageContract('PostgreSQL', scene);
shareContract('PostgreSQL', scene);
userContract('PostgreSQL', scene);
changeContract('PostgreSQL', scene);
quotaContract('PostgreSQL', scene);
